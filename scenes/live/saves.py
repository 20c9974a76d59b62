"""A world's state as bytes: a header of 16 and the arrays q, v and t, little-endian; after them, if bodies sleep
(`asleep.py`), 4 bytes per tree for its island, and the commands to the motors of sleeping trees.

2  b"Ca"
1  version of this layout
1  dtype: 4 or 8, bytes of a number
4  lag of the world, single precision [s]
8  the first half of the model's fingerprint
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ...collision.poses import Array
from ...engine.dynamics.trees import trees_of
from ...engine.topology import Topology
from ..compiling.check import UNIT_TOLERANCE
from ..wording import brief
from .asleep import sound

MAGIC, VERSION = b"Ca", 2
LATEST = 0.25  # [s] a world that is farther behind skips the rest: it has run slower
TURNING = ("floating", "spherical")  # joints with a quaternion
HEADER = struct.Struct("<2sBBf8s")


class SaveError(ValueError):
    """Bytes that are not a save of this world; the text says why, and what to do."""


class Saved(NamedTuple):
    """A saved state.  q (nq,), v (nv,), t () in the world's dtype; behind: lag of the world [s].
    island (T,), motors (nv,): those of sleeping trees, see `asleep.py`; empty if none sleeps."""

    q: Any
    v: Any
    t: Any
    behind: float
    island: Array
    motors: Array


def pack(saved: Saved, fingerprint: str) -> bytes:
    """Pack a state.  fingerprint: that of the model, hexadecimal."""
    wide = saved.q.dtype.itemsize
    head = HEADER.pack(MAGIC, VERSION, wide, saved.behind, bytes.fromhex(fingerprint)[:8])
    arrays = (*saved[:3], saved.island.astype(np.int32), saved.motors.astype(saved.q.dtype))
    return head + b"".join(x.astype(x.dtype.newbyteorder("<")).tobytes() for x in arrays)


def mark_of(data: bytes, marks: Iterable[str]) -> str:
    """The one of these fingerprints that is of a save's model; "" if there is none."""
    whole = bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else b""
    return next((mark for mark in marks if bytes.fromhex(mark)[:8] == whole[8 : HEADER.size]), "")


def unpack(data: bytes, fingerprint: str, topology: Topology, dtype: np.dtype) -> Saved:
    """Unpack the state of a world of this topology; raises SaveError for bytes of another world."""
    nq, nv, trees = topology.nq, topology.nv, trees_of(topology).n
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SaveError(f"{brief(data)} is no save of a world: give the bytes that save_state() returned")
    data = bytes(data)
    if len(data) < HEADER.size or data[:2] != MAGIC:
        raise SaveError(f"these {len(data)} bytes are no save of a world: give what save_state() returned, all of it")
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
    awake = HEADER.size + wide * (nq + nv + 1)
    asleep = awake + 4 * trees + wide * nv
    if len(data) not in (awake, asleep):
        raise SaveError(
            f"the save has {len(data)} bytes in place of {awake}, or {asleep} where bodies sleep: it was cut off, or "
            "something was added"
        )
    number, rows = dtype.newbyteorder("<"), trees if len(data) == asleep else 0
    numbers = np.frombuffer(data, number, nq + nv + 1, HEADER.size).astype(dtype)
    island = np.frombuffer(data, "<i4", rows, awake if rows else 0).astype(np.int32)
    motors = np.frombuffer(data, number, nv if rows else 0, awake + 4 * rows if rows else 0).astype(dtype)
    if not np.isfinite(numbers).all() or not np.isfinite(motors).all() or not 0 <= behind <= LATEST:
        raise SaveError("the save holds numbers that are not finite, or is too late: the bytes were damaged")
    if not sound(island):
        raise SaveError("the save says of bodies that they sleep with some that there are not: the bytes were damaged")
    q, v, t = np.split(numbers, (nq, nq + nv))
    lengths = np.linalg.norm(q[quaternions(topology)].astype(np.float64), axis=1)
    if (np.abs(lengths - 1) > UNIT_TOLERANCE).any():
        raise SaveError("the save holds quaternions that are not of length 1: the bytes were damaged")
    return Saved(q, v, t[0], behind, island, motors)


@functools.lru_cache(maxsize=256)
def quaternions(topology: Topology) -> Array:
    """Indices (n, 4) of the coordinates that are quaternions: the last four of a joint that has one."""
    ends = [end for kind, end in zip(topology.joints, topology.q_start[1:], strict=True) if kind in TURNING]
    return np.reshape(ends, (-1, 1)).astype(int) + np.arange(-4, 0)
