"""Writing values to memory: exactly their elements, to neighbouring addresses or to indices of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arena import THREADS
from ..graph import Value
from ..types import I32
from .addresses import index_in, index_of, indices_from
from .columns import woven
from .function import Function, constant
from .reading import WHOLE, RowStrip, Strip, element, element_at, power_of_two, read

ROW = 4  # elements: shorter rows are written one by one


def lanes_for(values: Sequence[Value]) -> int:
    """Number of elements of a vector for operations on all these values: 64 bytes of the widest."""
    return 8 if any(v.type.bytes == 8 for v in values) else 16


def strip_for(f: Function, values: Sequence[Value]) -> int:
    """Number of elements of a vector for operations in which elements do not interact."""
    return f.module.runner.strip or lanes_for(values)


def write(f: Function, value: Value, pointer: str, exact: bool = True) -> None:
    """Write all elements, one after the other.  exact: memory behind them is not changed."""
    type, size = value.type, value.size
    if size <= f.module.small:
        width = power_of_two(size)
        return f.store(type, width, read(f, value, WHOLE), pointer, size if exact else None)
    width = strip_for(f, [value])
    full = size // width * width if exact else size
    prepare(f, [value], width)
    if full:
        f.counted_loop(
            full, width, lambda i: f.store(type, width, read(f, value, Strip(i, width)), f.pointer(pointer, type, i))
        )
    if full < size:
        rest = f.pointer(pointer, type, full)
        f.store(type, width, read(f, value, Strip(str(full), width)), rest, size - full)


def write_at(f: Function, value: Value, pointer: str, indices: np.ndarray) -> None:
    """Write element k to index indices[k]."""
    type, size = value.type, value.size
    first = int(indices[0])
    if (indices == first + np.arange(size)).all():
        return write(f, value, f.pointer(pointer, type, first))
    if f.module.warp:
        return _scatter(f, value, f.pointer(pointer, type, first), indices - first)
    if size <= f.module.small:
        x, width = read(f, value, WHOLE), power_of_two(size)
        for k, index in enumerate(indices):
            f.store(type, 1, f.extract(type, width, x, k), f.pointer(pointer, type, int(index)))
        return
    length = _row_of(indices)
    if length >= ROW:
        return _write_rows(f, value, pointer, indices, length)
    if value.uniform:
        x = element(f, value.base, int(value.param[0])) if value.op == "view" else read(f, value, Strip("0", 1))

    def one(i: str) -> None:
        index = index_in(f, indices, i)
        y = x if value.uniform else element_at(f, value, i)
        f.store(type, 1, y, f.pointer(pointer, type, index))

    f.counted_loop(size, 1, one)


def _scatter(f: Function, value: Value, pointer: str, indices: np.ndarray) -> None:
    """Write each element to its own index, as many at once as there are threads."""
    type, size = value.type, value.size
    if size == 1:
        return f.store(type, 1, read(f, value, WHOLE), f.pointer(pointer, type, int(indices[0])))
    if size <= f.module.small:
        width = power_of_two(size)
        numbers = constant(I32, [*(int(k) for k in indices), *[0] * (width - size)], width)
        return f.scatter(type, width, read(f, value, WHOLE), pointer, numbers, size)
    prepare(f, [value], THREADS)

    def strip(i: str, count: int) -> None:
        x = read(f, value, Strip(i, THREADS))
        f.scatter(type, THREADS, x, pointer, indices_from(f, indices, i, THREADS), count)

    full = size // THREADS * THREADS
    if full:
        f.counted_loop(full, THREADS, lambda i: strip(i, THREADS))
    if full < size:
        strip(str(full), size - full)


def write_columns(f: Function, values: Sequence[Value], pointer: str) -> None:
    """Write values of one size side by side, as the columns of rows."""
    if f.module.warp:
        for k, value in enumerate(values):
            _scatter(f, value, f.pointer(pointer, value.type, k), np.arange(value.size) * len(values))
        return
    type, size, n = values[0].type, values[0].size, len(values)
    width = min(lanes_for(values[:1]), power_of_two(size))
    full = size // width * width

    def rows(columns: Sequence[str], i: str | int, count: int) -> None:
        start = f.pointer(pointer, type, i if isinstance(i, int) else f.times(i, n))
        for k, x in enumerate(woven(f, type, columns, width)):
            if count * n > k * width:
                f.store(type, width, x, f.pointer(start, type, k * width), min(width, count * n - k * width))

    if size <= f.module.small:
        whole = power_of_two(size)
        registers = [read(f, value, WHOLE) for value in values]
        for i in range(0, size, width):
            parts = [f.shuffle(type, whole, x, "poison", range(i, i + width)) for x in registers]
            rows(parts if whole > width else registers, i * n, min(width, size - i))
        return
    prepare(f, values, width)
    f.counted_loop(full, width, lambda i: rows([read(f, value, Strip(i, width)) for value in values], i, width))
    if full < size:
        rows([read(f, value, Strip(str(full), width)) for value in values], full * n, size - full)


def _row_of(indices: np.ndarray) -> int:
    """Length of the rows of neighbours that the indices consist of; 1 if they are not rows."""
    steps = np.diff(indices) == 1
    length = int(np.argmin(steps)) + 1
    return length if len(indices) % length == 0 and (np.diff(indices.reshape(-1, length), axis=1) == 1).all() else 1


def _write_rows(f: Function, value: Value, pointer: str, indices: np.ndarray, length: int) -> None:
    """Write rows of neighbours.  indices: those of rows of neighbours.  length: of a row."""
    type, width, firsts = value.type, strip_for(f, [value]), indices[::length]
    rest = length % width
    prepare(f, [value], width, *({power_of_two(rest)} if rest else ()))

    def row(r: str) -> None:
        first, index = f.times(r, length), index_in(f, firsts, r)
        start = f.pointer(pointer, type, index)

        def part(j: str, wide: int, count: int) -> None:
            x = read(f, value, RowStrip(length, r, first, j, wide))
            f.store(type, wide, x, f.pointer(start, type, index_of(j)), count)

        if length > rest:
            f.counted_loop(length - rest, width, lambda j: part(j, width, width))
        if rest:
            part(str(length - rest), power_of_two(rest), rest)

    f.counted_loop(len(firsts), 1, row)


def prepare(f: Function, values: Sequence[Value], *widths: int) -> None:
    """Read values that are the same in every iteration of a loop, before the loop."""
    for value in values:
        if value.uniform and value.op != "const":
            for width in widths:
                read(f, value, Strip("0", width))
