"""Recordings as files: complete ones (.npz), and journals of runs that did not reach their end.

A journal is a row of zip archives, one after another in one file: the first holds the facts of the run and its first
frames, each flush appends one with the frames since. Written bytes never change, so after a failure during a flush all
archives before it are intact, and bytes after the last complete one are cut off.
"""

from __future__ import annotations

import io
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from os import PathLike
from typing import BinaryIO

import numpy as np

from ..formats.atomic import replacing
from ..formats.errors import FileError
from .parts import Part, concatenate_parts
from .recording import Recording
from .schema import Arrays, check_schema, head_arrays, part_arrays, part_of, recording_of

LOCAL = struct.Struct("<6xH10xL4x2H")  # before a file: flags, its stored size, the sizes of its name and extras
ENTRY = struct.Struct("<28x3H12x")  # in the directory: the sizes of a name, extras and a comment
END, SHORTEST = 22, 20  # bytes: of the record that ends an archive without a comment, of any other
ENCRYPTED, DEFERRED = 1, 8  # flags; deferred: the size comes after the file
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
BROKEN = (
    zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, EOFError, NotImplementedError, struct.error,
    OverflowError, RecursionError, tokenize.TokenError,
)  # fmt: skip


def write_recording(recording: Recording, path: str | PathLike[str]) -> None:
    """Write one compact file; an older one of that name is replaced once this one is complete."""
    arrays = head_arrays(recording) | part_arrays(Part.first(recording))
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays, complete=np.array(recording.complete))


def read_recording(path: str | PathLike[str]) -> Recording:
    """Read a recording, or the part that was flushed before its run was killed (then `complete` is False)."""
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
    """Arrays of link `number` of a journal. Names are the link's own, so that nothing reads one link as the whole run.

    part: None if the link only says that the run has ended.
    """
    arrays = head | (part_arrays(part) if part else {}) | {"complete": np.array(ended)}
    return {f"link{number:06}_{name}": x for name, x in arrays.items()}


def _whole(path: str | PathLike[str], file: BinaryIO) -> Recording | None:
    """The recording in a complete file; None: it is a journal, or no recording."""
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
        raise _damage_error(path, error) from None


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
        return recording_of(path, head, concatenate_parts(parts), bool(links[-1]["complete"]))
    except FileError:
        raise
    except BROKEN as error:
        raise _damage_error(path, error) from None


def _links(file: BinaryIO) -> list[Arrays]:
    """The contiguous links of a journal from its start on, first to last; none if it has no start."""
    links: list[Arrays] = []
    start, size = 0, file.seek(0, os.SEEK_END)
    while start < size:
        stop = _end_of_archive(file, start, size)
        link = None if stop is None else _link(file, start, stop)
        if stop is None or link is None:
            break  # nothing after it counts
        links.append(link)
        start = stop
    return links


def _link(file: BinaryIO, start: int, stop: int) -> Arrays | None:
    """The arrays of the archive there, by their plain names; None if it is incomplete."""
    file.seek(start)
    try:
        arrays = _arrays(io.BytesIO(file.read(stop - start)))
    except BROKEN:
        return None
    return {name.partition("_")[2]: x for name, x in arrays.items()}


def _end_of_archive(file: BinaryIO, start: int, size: int) -> int | None:
    """The end of the archive that begins there, from one record to the next; None if it has none."""
    at = start
    while at < size:
        file.seek(at)
        record = file.read(ENTRY.size)
        kind = record[:4]
        if kind == b"PK\x05\x06":
            return at + END if len(record) >= END and record[END - 2 : END] == b"\0\0" else None  # no comment
        if len(record) < SHORTEST:
            return None
        if kind == b"PK\x03\x04":
            length = _length_of_file(file, record)
        elif kind == b"PK\x01\x02":
            length = ENTRY.size + sum(ENTRY.unpack(record)) if len(record) == ENTRY.size else None
        elif kind == b"PK\x06\x06":
            length = 12 + struct.unpack_from("<Q", record, 4)[0]
        else:
            length = SHORTEST if kind == b"PK\x06\x07" else None
        if length is None:
            return None
        at += length
    return None


def _length_of_file(file: BinaryIO, record: bytes) -> int | None:
    """Length of a file in an archive with its header; None if the header does not have it."""
    if len(record) < LOCAL.size:
        return None
    flags, stored, names, extras = LOCAL.unpack_from(record)
    file.seek(LOCAL.size + names - len(record), os.SEEK_CUR)
    extra = file.read(extras)
    if stored == 0xFFFFFFFF:
        if len(extra) < 20 or extra[:2] != b"\x01\0":
            return None
        stored = struct.unpack_from("<Q", extra, 12)[0]
    return None if flags & DEFERRED else LOCAL.size + names + extras + stored


def _arrays(file: BinaryIO) -> Arrays:
    """Arrays of an archive. Nothing larger than the file is allocated."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if any(x.compress_type != zipfile.ZIP_STORED or x.flag_bits & ENCRYPTED for x in members):
            raise ValueError("its arrays are compressed, or encrypted")
        if sum(x.file_size for x in members) > size or len({x.filename for x in members}) < len(members):
            raise ValueError("it says that it holds more than there is")
        return {x.filename.removesuffix(".npy"): _array(archive.read(x)) for x in members}  # which compares check sums


def _array(content: bytes) -> np.ndarray:
    """The array of an .npy file."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"its arrays have the format {version}")
    shape, _, dtype = HEADERS[version](file)
    left = len(content) - file.tell()
    if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != left:
        raise ValueError(f"an array of shape {shape} and type {dtype} stands in {left} bytes")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def _damage_error(path: str | PathLike[str], error: Exception) -> FileError:
    return FileError(path, f"it is damaged ({error}): copy it again, or run the scene again")
