"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` once it is whole and on the disk.

    Whatever happens on the way, a full disk or a kill, `path` is what it was before. Killed, it leaves a hidden file
    `.NAME.PID.part` beside it.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
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


def settle(file: BinaryIO) -> None:
    """On the disk, not only on the way there."""
    file.flush()
    os.fsync(file.fileno())


def settle_folder(folder: Path) -> None:
    """The name too, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
