"""Clusters: elementwise operations of one size as one stretch of registers, or as one loop over strips of vectors.

Where views look at a long array row by row (a broadcast, a part of a matrix), the loop runs over rows, and within a row
they are neighbours again. Vectors may reach over a row's end: the next row is written after it, and behind the last one
the slot has room.
"""

from __future__ import annotations

from collections.abc import Callable

from ..graph import MEMORY, Value
from ..order import Cluster
from ..plan import SMALL
from ..types import I32, Type, vector
from .arithmetic import apply, simple
from .function import Function
from .reading import (
    WHOLE,
    Position,
    Row,
    Strip,
    element,
    gather,
    open_rows,
    pointer_to,
    power_of_two,
    read,
    row_kind,
    row_start,
    table_pointer,
)
from .writing import lanes_for, prepare

GATHER = 14  # what an element by a table of places costs, in operations on a vector


def emit_cluster(f: Function, cluster: Cluster, place: Callable[[Value], None]) -> None:
    """place: gives a value its slot."""
    for value in cluster.values:
        if value.stored:
            place(value)
    size = cluster.size
    if size <= SMALL:
        for value in cluster.values:
            x = f.keep((value.id, WHOLE), compute(f, value, WHOLE))
            if value.stored:
                f.store(value.type, power_of_two(size), x, pointer_to(f, value))
        return
    width = lanes_for([v for value in cluster.values for v in (value, *value.args)])
    args = [a for v in cluster.values for k, a in enumerate(v.args) if not (v.op in MEMORY and k == 0)]
    length = _row_length(cluster, args, width)
    for value in cluster.values:
        if value.op == "window":
            _window_start(f, value)

    def turn(at: Position, i: str) -> None:
        for value in cluster.values:
            x = f.keep((value.id, at), compute(f, value, at))
            if value.stored:
                f.store(value.type, at.width(0), x, pointer_to(f, value, i))

    if not length:
        prepare(f, args, width)
        f.counted(size, width, lambda i: turn(Strip(i, width), i))
        return
    rest = length % width
    tail = max(2, power_of_two(rest)) if rest else 0
    unrolled = length <= 2 * width
    prepare(
        f, args, *({tail, width} if unrolled and length > width and tail else {tail or width} if unrolled else {width})
    )

    def row(r: str) -> None:
        first = f.let(f"mul i64 {r}, {length}")
        for a in args:  # where it begins in each view
            if a.op == "view" and not a.uniform and a.start is None and row_kind(a, length):
                row_start(f, a, Row(length, r, first, "0", width))
        if unrolled:
            for j in range(0, length, width):
                turn(
                    Row(length, r, first, str(j), width if length - j >= width else tail),
                    f.let(f"add i64 {first}, {j}"),
                )
        else:
            f.counted(length, width, lambda j: turn(Row(length, r, first, j, width), f.let(f"add i64 {first}, {j}")))

    f.counted(size // length, 1, row)


def _row_length(cluster: Cluster, args: list[Value], width: int) -> int | None:
    """Into rows of which length a cluster is best cut; None: not at all."""
    views = list({a.id: a for a in args if a.op == "view" and not a.uniform and a.start is None}.values())
    if not views:
        return None
    size, work = cluster.size, len(cluster.values)
    best, least = None, -(-size // width) * (work + GATHER * len(views))
    for length in range(3, size):
        if size % length == 0:
            gathered = sum(not row_kind(v, length) for v in views)
            strips = size // length * -(-length // width)
            cost = strips * (work + len(views) + GATHER * gathered) + size // length * (3 + len(views))
            if cost < least:
                best, least = length, cost
    return best


def compute(f: Function, value: Value, at: Position) -> str:
    width = at.width(value.size)
    if value.op == "build":
        x = "poison"
        for k, a in enumerate(value.args):
            one = element(f, a.base, int(a.param[0]) if a.op == "view" else 0)
            x = (
                f.let(f"insertelement {vector(value.type, width)} {x}, {value.type.llvm} {one}, i32 {k}")
                if width > 1
                else one
            )
        return x
    if value.op == "window":
        return _window(f, value, at, width)
    if value.op == "gather":
        return _gather(f, value, at, width)
    return apply(f, value.op, width, value.type, [(a.type, read(f, a, at)) for a in value.args], value.param)


def kept_within(f: Function, width: int, type: Type, x: str, most: int | str) -> str:
    """An index as i32, no less than 0 and no more than `most` [a register of i64, or a number]."""
    if type.kind == "u" or type.bytes < 4:
        wide = type if type.bytes >= 4 else I32
        x = x if wide is type else apply(f, "convert_element_type", width, I32, [(type, x)])
        type = wide
    if isinstance(most, str) and type.bytes < 8:
        most = f.let(f"trunc i64 {most} to {type.llvm}")
    zero, top = (f.splat(type, width, str(k)) for k in (0, most))
    if type.kind != "u":
        x = simple(f, "max", width, type, x, zero)
    x = simple(f, "min", width, type, x, top)
    return x if type.bytes == 4 else f.let(f"trunc {vector(type, width)} {x} to {vector(I32, width)}")


def offset(
    f: Function,
    width: int,
    indices: list[tuple[Type, str]],
    terms: tuple[tuple[int, int], ...],
    array: Value | None = None,
) -> str | None:
    """The sum of indices times strides, in i32. array: which it is an offset in, if that may be open."""
    total = None
    for (type, x), (stride, most) in zip(indices, terms, strict=True):
        if most < 0 and array is not None:
            x = kept_within(f, width, type, x, f.let(f"add i64 {open_rows(f, array)}, {most}"))
        else:
            x = kept_within(f, width, type, x, most)
        if stride != 1:
            x = simple(f, "mul", width, I32, x, f.splat(I32, width, str(stride)))
        total = x if total is None else simple(f, "add", width, I32, total, x)
    return total


def _window_start(f: Function, value: Value) -> str:
    """Where a window begins, in memory."""
    array, (table, terms) = value.args[0], value.param
    start = f.known((value.id, "start"))
    if start is None:
        moved = offset(f, 1, [(a.type, read(f, a, WHOLE)) for a in value.args[1:]], terms, array)
        first = pointer_to(f, array, int(table[0]))
        start = f.let(f"getelementptr inbounds {array.type.stored}, ptr {first}, i32 {moved}")
        f.keep((value.id, "start"), start)
    return start


def _window(f: Function, value: Value, at: Position, width: int) -> str:
    """A pattern of places, moved by an offset that is the same for all."""
    array, (table, _), start = value.args[0], value.param, _window_start(f, value)
    pattern = table - table[0]
    if value.size == 1:
        return f.load(value.type, 1, start)
    if not pattern.any():
        return f.splat(value.type, width, f.load(value.type, 1, start))
    i: str | int = 0 if at is WHOLE else at.i if isinstance(at, Strip) else f.let(f"add i64 {at.first}, {at.column}")  # type: ignore[union-attr]
    if (pattern == range(len(pattern))).all():
        return f.load(value.type, width, f.pointer(start, value.type, i))
    places = f.load(I32, width, table_pointer(f, I32, pattern.astype("int32"), i))
    return gather(f, array, places, width, start)


def _gather(f: Function, value: Value, at: Position, width: int) -> str:
    array, (table, terms) = value.args[0], value.param
    moved = offset(f, width, [(a.type, read(f, a, at)) for a in value.args[1:]], terms)
    assert moved is not None
    if (table == table[0]).all():
        return gather(f, array, moved, width, pointer_to(f, array, int(table[0])))
    i: str | int = 0 if at is WHOLE else at.i if isinstance(at, Strip) else f.let(f"add i64 {at.first}, {at.column}")  # type: ignore[union-attr]
    places = f.load(I32, width, table_pointer(f, I32, table.astype("int32"), i))
    return gather(f, array, simple(f, "add", width, I32, moved, places), width)


__all__ = ["emit_cluster", "kept_within", "offset"]
