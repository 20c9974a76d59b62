"""Accesses of a lane's memory by the threads of a warp: which of them must wait for each other."""

from __future__ import annotations

from typing import NamedTuple

BYTES = {"float": 4, "double": 8, "ptr": 8, "i64": 8, "i32": 4, "i16": 2, "i8": 1}


class Place(NamedTuple):
    """Where a pointer points to.

    bytes: into the arena.
    type, index: and so many elements of a type further; a register, or "" if it is not the same in all threads.
    slot: what it does not leave, from byte to byte of the arena.
    constant: it is no place in the arena, but among constants.
    """

    bytes: int = 0
    type: str = "i8"
    index: str | None = None
    slot: tuple[int, int] = (0, 1 << 62)
    constant: bool = False


class Access(NamedTuple):
    """Of memory since the threads waited last.  low, high: bytes of the arena.  by: which thread's is which element;
    None: not known.  together: whether no two threads have the same one."""

    low: int
    high: int
    by: tuple[object, ...] | None
    together: bool
    writes: bool

    def meets(self, other: Access) -> bool:
        """Whether a later access must wait. What all threads that look at a place have written there they need not
        wait to read."""
        if not (self.writes or other.writes) or self.high <= other.low or other.high <= self.low:
            return False
        same = self.by is not None and self.by == other.by
        return not (same and (self.together or (self.writes and not other.writes)))
