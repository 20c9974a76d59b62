"""Errors in files, in one message."""

from __future__ import annotations

from os import PathLike, fspath

from ..wording import MESSAGE, abridge


class FileError(ValueError):
    """A file that cannot be read: its path, the line, its content there, and what to do.

    path: the file's.  line: from 1 on, or None if the file has no lines.
    """

    def __init__(self, path: str | PathLike[str], message: str, line: int | None = None) -> None:
        self.path, self.line = fspath(path), line
        where = f"{abridge(self.path)}{f', line {line}' if line else ''}"
        super().__init__(f"{where}: {abridge(message, MESSAGE)}")
