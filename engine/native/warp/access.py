"""Accesses of a lane's memory by the threads of a warp: which of them must wait for each other."""

from __future__ import annotations

from typing import NamedTuple

BYTES = {"float": 4, "double": 8, "ptr": 8, "i64": 8, "i32": 4, "i16": 2, "i8": 1}


class Address(NamedTuple):
    """The address that a pointer holds.

    bytes: offset in the arena.
    type, index: further elements of a type; a register, or "" if it is not the same in all threads.
    slot: (first, end) bytes of the arena that it stays within.
    constant: whether it points to constants, not into the arena.
    """

    bytes: int = 0
    type: str = "i8"
    index: str | None = None
    slot: tuple[int, int] = (0, 1 << 62)
    constant: bool = False


class Access(NamedTuple):
    """An access of memory since the threads last waited.

    low, high: bytes of the arena.
    by: which thread accesses which element; None: not known.
    together: whether no two threads access the same element."""

    low: int
    high: int
    by: tuple[object, ...] | None
    together: bool
    writes: bool

    def meets(self, other: Access) -> bool:
        """Return whether a later access must wait. A thread need not wait to read what it has written itself."""
        if not (self.writes or other.writes) or self.high <= other.low or other.high <= self.low:
            return False
        same = self.by is not None and self.by == other.by
        return not (same and (self.together or (self.writes and not other.writes)))
