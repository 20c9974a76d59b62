"""Recordings as files: whole ones (.npz), and journals of runs that did not come to their end.

A journal is a row of zip archives, one after another in one file: the first holds what is known of the run and its
first frames, each flush appends one with the frames since. Nothing that was written is ever touched again, so whatever
happens during a flush, all archives before it are as they were, and what stands behind the last whole one is cut off.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from os import PathLike
from typing import BinaryIO

import numpy as np

from .atomic import replacing
from .errors import FileError
from .recording import Recording
from .recording_parts import Part, joined
from .recording_schema import Arrays, check_schema, head_arrays, part_arrays, part_of, recording_of

END = struct.Struct("<4s4H2LH")  # the end of an archive: signature, disks, entries, bytes of directory, start, comment
SIGNATURE = b"PK\x05\x06"
BROKEN = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, NotImplementedError, struct.error)
STEP = 1 << 20  # bytes that are searched at once


def write_recording(recording: Recording, path: str | PathLike[str]) -> None:
    """One compact file; an older one of that name is replaced once this one is whole."""
    arrays = head_arrays(recording) | part_arrays(Part.first(recording))
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays, complete=np.array(recording.complete))


def read_recording(path: str | PathLike[str]) -> Recording:
    """A recording, or as much of one as was flushed before its run was killed (then `complete` is False)."""
    try:
        with open(path, "rb") as file:
            return _whole(path, file) or _journal(path, file)
    except FileNotFoundError:
        raise FileError(path, "there is no such file") from None
    except OSError as error:
        raise FileError(path, f"it cannot be read: {error.strerror}") from None


def archive(arrays: Mapping[str, np.ndarray]) -> bytes:
    """One link of a journal."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def link_arrays(number: int, part: Part | None, head: Arrays, ended: bool) -> Arrays:
    """Of link `number` of a journal. Their names are their own, lest one link be taken for all of the run.

    part: None where nothing is left to say but that the run has ended.
    """
    arrays = head | (part_arrays(part) if part else {}) | {"complete": np.array(ended)}
    return {f"link{number:06}_{name}": x for name, x in arrays.items()}


def _whole(path: str | PathLike[str], file: BinaryIO) -> Recording | None:
    """None: it is a journal, or no recording at all."""
    if not zipfile.is_zipfile(file):
        return None
    file.seek(0)
    try:
        arrays = _arrays(file)
    except BROKEN:
        return None
    if any(name.startswith("link") for name in arrays):
        return None
    try:
        check_schema(path, arrays)
        return recording_of(path, arrays, part_of(arrays, arrays), bool(arrays["complete"]))
    except FileError:
        raise
    except BROKEN as error:
        raise _damaged(path, error) from None


def _journal(path: str | PathLike[str], file: BinaryIO) -> Recording:
    links = _links(file)
    if not links:
        file.seek(0)
        began = file.read(4) == b"PK\x03\x04"
        why = "it is damaged, no whole archive is in it" if began else "this is no recording of Carom"
        raise FileError(path, f"{why}: give a file that `carom run` wrote")
    try:
        head = links[0]
        check_schema(path, head)
        parts = [part_of(link, head) for link in links if "t" in link]
        return recording_of(path, head, joined(parts), bool(links[-1]["complete"]))
    except FileError:
        raise
    except BROKEN as error:
        raise _damaged(path, error) from None


def _links(file: BinaryIO) -> list[Arrays]:
    """Those of a journal that stand together from its start on, first to last; none if it has no start."""
    links: list[Arrays] = []
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        stop = _last_end(file, end)
        if stop is None:
            return []  # what was found hangs in the air
        file.seek(stop - END.size)
        *_, size, offset, comment = END.unpack(file.read(END.size))
        start = stop - END.size - size - offset
        link = None if comment or start < 0 else _link(file, start, stop)
        if link is None:
            end = stop - 1  # those four bytes were data, or the archive is damaged: look further up
            links.clear()
            continue
        if stop != end:
            links.clear()  # a hole: nothing behind it counts
        links.append(link)
        end = start
    return links[::-1]


def _link(file: BinaryIO, start: int, stop: int) -> Arrays | None:
    """The arrays of the archive that stands there, by their plain names; None if it is not whole."""
    file.seek(start)
    try:
        arrays = _arrays(io.BytesIO(file.read(stop - start)))
    except BROKEN:
        return None
    return {name.partition("_")[2]: x for name, x in arrays.items()}


def _arrays(file: BinaryIO) -> Arrays:
    arrays = np.load(file, allow_pickle=False)
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        raise ValueError("it is one array")
    return dict(arrays)  # reading to the end compares check sums


def _last_end(file: BinaryIO, end: int) -> int | None:
    """Where the last archive that ends at or before `end` does, by its signature."""
    stop = end
    while stop > 0:
        start = max(0, stop - STEP)
        file.seek(start)
        block = file.read(min(stop + len(SIGNATURE) - 1, end) - start)
        at = len(block)
        while (at := block.rfind(SIGNATURE, 0, at)) >= 0:
            if start + at + END.size <= end:
                return start + at + END.size
        stop = start
    return None


def _damaged(path: str | PathLike[str], error: Exception) -> FileError:
    return FileError(path, f"it is damaged ({error}): copy it again, or run the scene again")
