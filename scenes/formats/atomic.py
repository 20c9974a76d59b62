"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import FileError


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file to write, which replaces `path` once it is complete and on the disk.

    After a failure on the way, a full disk or a kill, `path` is what it was before. A killed process leaves a hidden
    file `.NAME.PID.part` beside it.
    """
    path, part = Path(path), _part(path)
    try:
        with open(part, "wb") as file:
            yield file
            settle(file)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    settle_folder(path.parent)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check that `replacing` can begin and end, before the work that is to be written; raises FileError.

    The trial leaves nothing, and a file of that name stays unchanged.
    """
    part = _part(path)
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        try:
            open(part, "wb").close()
        finally:
            with contextlib.suppress(OSError):
                part.unlink()
    except (OSError, ValueError) as error:  # ValueError: a zero byte, or a name that no file system can have
        why = getattr(error, "strerror", None) or str(error)
        raise FileError(path, f"it cannot be written ({why}): give another path") from None


def _part(path: str | os.PathLike[str]) -> Path:
    """The hidden file beside a path."""
    path = Path(path)
    if not path.name:
        raise FileError(path, "this is no name of a file: give another path")
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def settle(file: BinaryIO) -> None:
    """Flush a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def settle_folder(folder: Path) -> None:
    """Flush a file's name to the disk, if folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
