"""A world's state as bytes: a header of 16 and the arrays q, v and t, little-endian.

2  b"Ca"
1  version of this layout
1  dtype: 4 or 8, bytes of a number
4  how far the world is behind, single precision [s]
8  the first half of the model's fingerprint
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

MAGIC, VERSION = b"Ca", 1
HEADER = struct.Struct("<2sBBf8s")


class SaveError(ValueError):
    """Bytes that are not a save of this world; the text says why, and what to do."""


class Saved(NamedTuple):
    """q (nq,), v (nv,), t () in the world's dtype; behind: how far the world is behind [s]."""

    q: Any
    v: Any
    t: Any
    behind: float


def pack(saved: Saved, fingerprint: str) -> bytes:
    """fingerprint: of the model, hexadecimal."""
    wide = saved.q.dtype.itemsize
    head = HEADER.pack(MAGIC, VERSION, wide, saved.behind, bytes.fromhex(fingerprint)[:8])
    return head + b"".join(x.astype(x.dtype.newbyteorder("<")).tobytes() for x in saved[:3])


def unpack(data: bytes, fingerprint: str, nq: int, nv: int, dtype: np.dtype) -> Saved:
    """The state of a world with so many coordinates and velocities; raises SaveError where the bytes are another's."""
    if len(data) < HEADER.size or data[:2] != MAGIC:
        raise SaveError(f"these {len(data)} bytes are no save of a world: give what save() returned, all of it")
    _, version, wide, behind, mark = HEADER.unpack_from(data)
    if version != VERSION:
        raise SaveError(f"the save has version {version}, and this Carom reads {VERSION}: use the Carom that wrote it")
    if wide != dtype.itemsize:
        fix = f'make the world with dtype="float{8 * wide}"'
        raise SaveError(f"the save is of a world in float{8 * wide}, and this one is in {dtype.name}: {fix}")
    if mark != bytes.fromhex(fingerprint)[:8]:
        raise SaveError(
            "the save is of another model: make the world from the same scene, with the same pool and the same Carom"
        )
    whole = HEADER.size + wide * (nq + nv + 1)
    if len(data) != whole:
        raise SaveError(f"the save has {len(data)} bytes in place of {whole}: it was cut off, or something was added")
    numbers = np.frombuffer(data, dtype.newbyteorder("<"), offset=HEADER.size).astype(dtype)
    q, v, t = np.split(numbers, (nq, nq + nv))
    if not np.isfinite(numbers).all() or not np.isfinite(behind) or behind < 0:
        raise SaveError("the save holds numbers that are not finite: the bytes were damaged")
    return Saved(q, v, t[0], behind)
