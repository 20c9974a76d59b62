"""A writer of recordings while their runs go on."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from io import FileIO
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from ..formats.atomic import replacing, settle
from .file import archive, link_arrays, read_recording, write_recording
from .parts import Part, concatenate_parts
from .recording import Recording
from .schema import head_arrays

if TYPE_CHECKING:
    from ...integrators.rollout import Rollout

PERIOD = 2.0  # [s] between flushes
SHARE = 50  # flushes may take 1/SHARE of the time
LARGE = 1 << 28  # bytes that are flushed at once, however soon


class RecordingWriter:
    """Writes a run piece by piece; a killed one leaves a file that `read_recording` reads up to the last flush.

        with RecordingWriter(path, Recording.of(scene, result, title=..., keywords=...)) as writer:
            writer.append(carom.rollout(model, result.state, ...))

    first: the run's first piece, which is on the disk at once, and replaces an older file of that name. At the end of
    the block the file becomes a compact one. Out of space: OSError, and flushed pieces stay.
    """

    def __init__(self, path: str | PathLike[str], first: Recording) -> None:
        self.path = os.fspath(path)
        self._number, self._pending = 1, list[Part]()
        link = archive(link_arrays(0, Part.first(first), head_arrays(first), ended=False))
        started = time.monotonic()
        with self._room_or_words("nothing was written"), replacing(path) as file:
            file.write(link)
        self._size = len(link)
        self._file = open(path, "r+b", buffering=0)  # noqa: SIM115  # open for as long as the writer is
        self._flushed, self._took = time.monotonic(), time.monotonic() - started
        self._last_t = float(np.nanmax(first.t))

    def append(self, result: Rollout) -> None:
        """Append the next piece: a rollout that began at the end of the one before."""
        self._pending.append(Part.after(result))
        since = time.monotonic() - self._flushed
        if since > max(PERIOD, SHARE * self._took) or sum(part.nbytes for part in self._pending) > LARGE:
            self.flush()

    def flush(self, ended: bool = False) -> None:
        """Flush all pieces to the disk."""
        if not (self._pending or ended):
            return
        started = time.monotonic()
        part = concatenate_parts(self._pending) if self._pending else None
        link = archive(link_arrays(self._number, part, {}, ended))
        with self._room_or_words(f"the recording up to t = {self._last_t:.6g} s is there"):
            try:
                self._file.seek(self._size)
                _write_all(self._file, link)
                settle(self._file)
            except BaseException:
                with contextlib.suppress(OSError):
                    self._file.truncate(self._size)
                raise
        self._number, self._size, self._pending = self._number + 1, self._size + len(link), []
        if part is not None:
            self._last_t = float(np.nanmax(part.t, initial=self._last_t))
        self._flushed, self._took = time.monotonic(), time.monotonic() - started

    def close(self, complete: bool = True) -> None:
        """Write one compact file of all pieces. complete: whether the run reached its end."""
        if self._file.closed:
            return
        try:
            self.flush(ended=complete)
        finally:
            self._file.close()
        with self._room_or_words("the recording is whole, but in a form that only `carom` reads"):
            write_recording(read_recording(self.path), self.path)

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, OSError):
            self._file.close()  # the disk fails
        else:
            self.close(complete=kind is None)

    @contextlib.contextmanager
    def _room_or_words(self, left: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            words = "no space is left on the disk" if full else error.strerror
            raise OSError(error.errno, f"cannot write {self.path}: {words}; {left}") from None


def _write_all(file: FileIO, content: bytes) -> None:
    """Write all bytes: an unbuffered file may accept only a part of them, as on a disk that is nearly full."""
    view = memoryview(content)
    while view:
        view = view[file.write(view) :]
