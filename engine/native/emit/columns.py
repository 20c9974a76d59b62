"""Columns: every n-th element of an array in memory, a vector of them.

For reading, rows are loaded and transposed by shuffles: two rows give half of the columns, two pairs of rows a
quarter, until a column is left. Work that columns of the same rows share is done once. For writing, columns side by
side are shuffled into rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..graph import Value
from ..types import Type, type_of, vector
from .function import Function, power_of_two


class _Rows(NamedTuple):
    """start: a register, the address of the first row.  step: elements from each to the next.  wide: number of
    elements read of each.  width: number of rows, that of a vector."""

    start: str
    type: Type
    step: int
    wide: int
    width: int


def column(f: Function, array: Value, start: str, offset: int, step: int, i: str, width: int) -> str:
    """Elements offset + k step of an array, which begins at `start`, for k = i, i + 1, ..."""
    type = array.type if array.type.kind != "b" else type_of(np.dtype(np.int8))
    wide = min(width, power_of_two(step))
    row, offset = divmod(offset, step)
    left = offset - offset % wide
    f.module.beyond = max(f.module.beyond, (step * width + wide) * type.bytes)
    key = (array.id, "columns", i, row * step + left, step, width)
    first = f.look_up(key)
    if first is None:
        number = f.times(i, step)
        first = f.keep(key, f.pointer(f.pointer(start, type, number), type, row * step + left))
    x = _transpose(f, _Rows(first, type, step, wide, width), 0, width, offset - left)[0]
    return x if type is array.type else f.let(f"trunc {vector(type, width)} {x} to {vector(array.type, width)}")


def _transpose(f: Function, rows: _Rows, top: int, count: int, column: int) -> tuple[str, list[tuple[int, int]]]:
    """A vector of `count` rows top, top + 1, ..., and of the columns that include `column`; and the row and the column
    of each element."""
    some = rows.width // count
    first = column - column % some
    key = (rows, top, count, first)
    known = f.look_up(key)
    if count * rows.wide == rows.width:
        where = [(r, c) for r in range(top, top + count) for c in range(rows.wide)]
        return known or f.keep(key, _load_rows(f, rows, top, count)), where
    where = [(r, c) for c in range(first, first + some) for r in range(top, top + count)]
    if known is None:
        (x, of_x), (y, of_y) = (_transpose(f, rows, k, count // 2, first) for k in (top, top + count // 2))
        known = f.keep(key, f.shuffle(rows.type, rows.width, x, y, [(of_x + of_y).index(at) for at in where]))
    return known, where


def _load_rows(f: Function, rows: _Rows, top: int, count: int) -> str:
    """Load `count` rows, one after the other."""
    if rows.step == rows.wide:
        return f.load(rows.type, rows.width, f.pointer(rows.start, rows.type, top * rows.step))
    if count == 1:
        return f.load(rows.type, rows.wide, f.pointer(rows.start, rows.type, top * rows.step))
    x, y = (_load_rows(f, rows._replace(width=rows.width // 2), k, count // 2) for k in (top, top + count // 2))
    return f.shuffle(rows.type, rows.width // 2, x, y, range(rows.width))


def woven(f: Function, type: Type, columns: Sequence[str], width: int) -> Iterator[str]:
    """Vectors of the rows formed by columns of `width` elements side by side, one row after the other."""
    n = len(columns)
    for first in range(0, n * width, width):
        yield _merge(f, type, columns, width, [divmod(first + k, n) for k in range(width)])[0]


def _merge(
    f: Function, type: Type, columns: Sequence[str], width: int, wanted: list[tuple[int, int]]
) -> tuple[str, list[tuple[int, int]]]:
    """A vector that holds the wanted elements (row, column), each at its index in the list if they are of several
    columns; and the (row, column) of each of its elements."""
    own = sorted({c for _, c in wanted if c >= 0})
    if len(own) == 1:
        return columns[own[0]], [(r, own[0]) for r in range(width)]
    middle = own[len(own) // 2]
    low, high = ([at if (at[1] < middle) is is_low else (0, -1) for at in wanted] for is_low in (True, False))
    (x, of_x), (y, of_y) = (_merge(f, type, columns, width, part) for part in (low, high))
    both = of_x + of_y
    picks = [both.index(at) if at[1] >= 0 else -1 for at in wanted]
    return f.shuffle(type, width, x, y, picks), wanted
