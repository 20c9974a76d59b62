"""The memory of a lane: one block, in which every stored value has a slot while it is still read.

All of it is laid out when the program is compiled; nothing is allocated while it runs.
"""

from __future__ import annotations

import bisect

from .graph import Value

LINE = 64  # bytes: slots begin at lines of the cache, where vectors of every width are aligned
PADDING = 16  # elements: vectors may read and write this far beyond an array's last element
THREADS = 32  # of a warp; its vectors reach that far


class Slot:
    """A part of the arena.  holders: number of values and loops that hold it.  owners: those that hold it for future
    values, e.g. the loop or branch whose result it is: while there are no others, its content will not be read."""

    __slots__ = ("fixed", "holders", "offset", "owners", "size")

    def __init__(self, offset: int, size: int, fixed: bool = False) -> None:
        self.offset, self.size, self.fixed = offset, size, fixed
        self.holders, self.owners = 1, 0


class Arena:
    def __init__(self, warp: bool = False) -> None:
        self.top = LINE if warp else 0  # scratch of a warp's threads, never read
        self._padding = THREADS if warp else PADDING
        self._free: list[tuple[int, int]] = []  # (offset, size) of lines, by offset, never adjacent
        self._cells: list[int] = []  # 8 bytes each, for single numbers

    def take(self, value: Value, fixed: bool = False) -> Slot:
        """Return a new slot with one holder.  fixed: nothing else may be written there."""
        if value.size == 1:
            if not self._cells:
                line = self._lines(LINE)
                self._cells = [line + k for k in range(LINE - 8, -8, -8)]
            return Slot(self._cells.pop(), 8, fixed)
        size = -(-(value.size + self._padding) * value.type.bytes // LINE) * LINE
        return Slot(self._lines(size), size, fixed)

    def take_open(self) -> Slot:
        """Return a slot for the address of an open array and its number of rows."""
        return Slot(self._lines(LINE), LINE, True)

    def drop(self, slot: Slot) -> None:
        slot.holders -= 1
        assert slot.holders >= 0, "a slot is given back twice"
        if slot.holders or slot.fixed:
            return
        if slot.size == 8:
            self._cells.append(slot.offset)
        else:
            self._give_back(slot.offset, slot.size)

    def _lines(self, size: int) -> int:
        """Return lines of the smallest gap that is large enough."""
        fits = [(n, offset) for offset, n in self._free if n >= size]
        if not fits:
            self.top += size
            return self.top - size
        n, offset = min(fits)
        self._free.remove((offset, n))
        if n > size:
            bisect.insort(self._free, (offset + size, n - size))
        return offset

    def _give_back(self, offset: int, size: int) -> None:
        k = bisect.bisect(self._free, (offset, 0))
        if k < len(self._free) and self._free[k][0] == offset + size:
            size += self._free.pop(k)[1]
        if k and sum(self._free[k - 1]) == offset:
            offset, before = self._free.pop(k - 1)
            size += before
        bisect.insort(self._free, (offset, size))
