"""Clusters: elementwise operations of one size as one stretch of registers, or as one loop over strips of vectors.

If views look at a long array row by row (a broadcast, a part of a matrix), the loop runs over rows, and within a row
elements are neighbours again. Vectors may reach over a row's end: the next row is written after it, and the slot has
room behind the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..first_rows import AT_A_TIME
from ..graph import MEMORY, Cluster, Limit, Value, first_index
from .addresses import pointer_to
from .function import Function
from .reading import (
    WHOLE,
    Position,
    RowStrip,
    Strip,
    built_of,
    compute,
    element,
    power_of_two,
    row_kind,
    row_start,
    window_start,
)
from .writing import prepare, strip_for

GATHER = 14  # cost of an element by a table of indices, in operations on a vector


def emit_cluster(f: Function, cluster: Cluster, allocate: Callable[[Value], None]) -> None:
    """Emit a cluster.  allocate: the function that gives a value its slot."""
    size = cluster.size
    built = [value for value in cluster.values if value.op == "build" and size > f.module.small]
    for value in cluster.values:
        if value.stored or value in built:
            allocate(value)
    for value in built:  # their elements are from anywhere: no loop makes these
        for k, one in enumerate(built_of(f, value)):
            f.store(value.type, 1, one, pointer_to(f, value, k))
    values = [value for value in cluster.values if value not in built]
    if not values:
        return
    if size <= f.module.small:
        for value in cluster.values:
            x = f.keep((value.id, WHOLE), compute(f, value, WHOLE))
            if value.stored:
                f.store(value.type, power_of_two(size), x, pointer_to(f, value))
        return

    def emit_strip(at: Position, i: str, _: int) -> None:
        for value in values:
            x = f.keep((value.id, at), compute(f, value, at))
            if value.stored:
                f.store(value.type, at.width(0), x, pointer_to(f, value, i))

    over_strips(f, size, values, emit_strip, limit=cluster.limit)


def over_strips(
    f: Function,
    size: int,
    values: Sequence[Value],
    emit_strip: Callable[[Position, str, int], None],
    exact: bool = False,
    limit: Limit | None = None,
) -> None:
    """Call emit_strip(position, element, count) for strips of a long array, one after another, in order.

    values: the operations that are computed there.  count: number of elements of the vector that are the array's.
    exact: no strip reaches beyond its count; else the last one may, and no other follows it.
    limit: the first rows that are needed; None: all. It is not used if exact.
    """
    width = strip_for(f, [v for value in values for v in (value, *value.args)])
    args = [a for v in values for k, a in enumerate(v.args) if not (v.op in MEMORY and k == 0)]
    length = _row_length(size, values, args, width, limit.width * AT_A_TIME if limit else size)
    for value in values:
        if value.op == "window":
            window_start(f, value)
    if not length:
        prepare(f, args, width)
        full = size // width * width if exact else size
        if full:
            f.counted_loop(
                _values_needed(f, limit, size, 1) if limit else full,
                width,
                lambda i: emit_strip(Strip(i, width), i, width),
            )
        if full < size:
            emit_strip(Strip(str(full), width), str(full), size - full)
        return
    rest = length % width
    tail = max(2, power_of_two(rest)) if rest else 0
    unrolled = length <= 2 * width
    if unrolled:
        widths = {width} if length >= width else set()
        prepare(f, args, *widths, *({tail} if tail else ()))
    else:
        prepare(f, args, width, *({tail} if tail and exact else ()))

    def row(r: str) -> None:
        first = f.times(r, length)
        for a in args:  # the start of the row in each view
            if a.op == "view" and not a.uniform and a.start is None and row_kind(a, length):
                row_start(f, a, RowStrip(length, r, first, "0", width))
        if unrolled:
            for j in range(0, length, width):
                wide, count = (width, width) if length - j >= width else (tail, rest)
                emit_strip(RowStrip(length, r, first, str(j), wide), f.plus(first, j), count)
            return
        full = length - rest if exact else length
        f.counted_loop(full, width, lambda j: emit_strip(RowStrip(length, r, first, j, width), f.plus(first, j), width))
        if full < length:
            emit_strip(RowStrip(length, r, first, str(full), tail), f.plus(first, full), rest)

    f.counted_loop(_values_needed(f, limit, size, length) if limit else size // length, 1, row)


def _values_needed(f: Function, limit: Limit, size: int, length: int) -> str:
    """The number of stretches of `length` elements that are computed, at least one: rows up to the count, `AT_A_TIME`
    of them at a time."""
    most, count = size // limit.width, "0"
    for one in limit.counts:
        x = element(f, one.base, first_index(one))
        count = f.let(f"select i1 {f.let(f'icmp ugt i32 {x}, {count}')}, i32 {x}, i32 {count}")
    full = f.let(f"and i32 {f.let(f'add i32 {count}, {AT_A_TIME - 1}')}, {-AT_A_TIME}")
    few = f.let(f"icmp ult i32 {full}, {most}")  # if it is 0, the first stretch is computed
    elements = f.times(f.as_index(f.let(f"select i1 {few}, i32 {full}, i32 {most}")), limit.width)
    return elements if length == 1 else f.let(f"udiv {f.index} {elements}, {length}")


def _row_length(size: int, values: Sequence[Value], args: list[Value], width: int, whole: int) -> int | None:
    """Length of the rows into which a loop is best cut, a divisor of `whole`; None: it is not cut."""
    views = list({a.id: a for a in args if a.op == "view" and not a.uniform and a.start is None}.values())
    if not views:
        return None
    work = len(values)
    best, least = None, -(-size // width) * (work + GATHER * len(views))
    for length in range(3, size):
        if size % length == 0 and whole % length == 0:
            gathered = sum(not row_kind(v, length) for v in views)
            strips = size // length * -(-length // width)
            cost = strips * (work + len(views) + GATHER * gathered) + size // length * (3 + len(views))
            if cost < least:
                best, least = length, cost
    return best
