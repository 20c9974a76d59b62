"""Nodes without bodies: joins, updates, reductions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

import numpy as np

from ..graph import Node, Value
from ..rules.reductions import neutral
from ..types import BOOL, I32, Type, literal, vector
from .addresses import check_bounds, offset, pointer_to, table_pointer
from .arithmetic import choose, compare, simple
from .clusters import over_strips
from .function import Function
from .reading import WHOLE, Position, RowStrip, Strip, element_at, power_of_two, read
from .writing import lanes_for, prepare, write_at, write_columns


class Slots(Protocol):
    """What gives values their slots in the arena: the program (`program.py`)."""

    def allocate(self, value: Value) -> None: ...
    def allocate_if_stored(self, value: Value) -> None: ...
    def take_over(self, f: Function, old: Value, new: Value, node: Node) -> None: ...


def finish(f: Function, value: Value, x: str) -> None:
    """Finish a small result that is in a register."""
    f.keep((value.id, WHOLE), x)
    if value.stored:
        f.store(value.type, power_of_two(value.size), x, pointer_to(f, value))


def emit_join(f: Function, node: Node, slots: Slots) -> None:
    (made,), (_, _, targets) = node.results, node.param
    slots.allocate(made)
    start, together = pointer_to(f, made), defaultdict(list)
    for value, target_indices in zip(node.args, targets, strict=True):
        steps = np.diff(target_indices)
        step = int(steps[0]) if len(steps) and (steps == steps[0]).all() else 1
        together[step, len(target_indices), target_indices[0] // step].append(
            (int(target_indices[0]), value, target_indices)
        )
    for (step, _, _), members in together.items():
        members.sort(key=lambda member: member[0])
        if step > 1 and len(members) == step and made.type.kind != "b":
            write_columns(f, [value for _, value, _ in members], f.pointer(start, made.type, members[0][0]))
        else:
            for _, value, target_indices in members:
                write_at(f, value, start, target_indices)


def emit_empty(f: Function, node: Node, slots: Slots) -> None:
    (made,) = node.results
    if made.size <= f.module.small:
        if made.stored:
            slots.allocate(made)
        zero = literal(made.type, 0)
        f.keep((made.id, WHOLE), f.splat(made.type, power_of_two(made.size), zero))
    else:
        slots.allocate(made)


def emit_put(f: Function, node: Node, slots: Slots) -> None:
    """Emit the update of a block, in place if nothing reads the old array afterwards."""
    (made,), (table, terms) = node.results, node.param
    array, *indices = node.args
    update = node.source or indices.pop(0)
    inside = indices.pop() if node.op == "put_if" else None
    slots.take_over(f, array, made, node)
    displacement = offset(f, 1, [(a.type, read(f, a, WHOLE)) for a in indices], terms, made)
    start = pointer_to(f, made)
    if displacement:
        start = f.let(f"getelementptr inbounds {made.type.stored}, ptr {start}, i32 {displacement}")
        for extreme in (table.min(), table.max()) if f.module.checked else ():
            check_bounds(f, made, f.pointer(start, made.type, int(extreme)))
    if node.source is not None:
        type, start = update.type, f.pointer(start, update.type, int(table[0]))

        def emit_strip(at: Position, i: str, count: int) -> None:
            f.store(type, at.width(0), read(f, update, at), f.pointer(start, type, i), count)

        return over_strips(f, update.size, node.inner, emit_strip, exact=True)
    if inside is None:
        return write_at(f, update, start, table)
    label = f"put{next(f.module.labels)}"
    f.do(f"br i1 {read(f, inside, WHOLE)}, label %{label}, label %{label}.end")
    f.begin(label)
    with f.scope():
        write_at(f, update, start, table)
    f.do(f"br label %{label}.end")
    f.begin(f"{label}.end")


def emit_scatter(f: Function, node: Node, slots: Slots) -> None:
    """Emit updates one after another, each at its own index."""
    (array, updates, *indices), (made,), (table, terms, combine, drop) = node.args, node.results, node.param
    slots.take_over(f, array, made, node)
    start, type = pointer_to(f, made), made.type

    def one(k: str) -> None:
        numbers = [
            (a.type, element_at(f, a, k) if a.op != "const" or not a.uniform else literal(a.type, a.param[0]))
            for a in indices
        ]
        index = f.load(I32, 1, table_pointer(f, I32, table.astype(np.int32), k))
        inside = None
        if drop:
            for (t, x), (_, most) in zip(numbers, terms, strict=True):
                checks = [("le", most)] if t.kind == "u" else [("ge", 0), ("le", most)]
                for how, bound in checks:
                    good = compare(f, how, 1, t, x, str(bound))
                    inside = good if inside is None else simple(f, "and", 1, BOOL, inside, good)
        index = simple(f, "add", 1, I32, index, offset(f, 1, numbers, terms) or "0")
        target = f.let(f"getelementptr inbounds {type.stored}, ptr {start}, i32 {index}")
        old = f.load(type, 1, check_bounds(f, made, target))
        new = element_at(f, updates, k)
        new = new if combine == "set" else simple(f, combine, 1, type, old, new)
        f.store(type, 1, choose(f, 1, type, inside, new, old) if inside else new, target)

    f.counted_loop(updates.size, 1, one)


# reductions


def halves(f: Function, op: str, type: Type, x: str, width: int) -> str:
    """Reduce a vector by pairs of halves, until one element is left."""
    while width > 1:
        half = width // 2
        low = f.shuffle(type, width, x, "poison", range(half))
        high = f.shuffle(type, width, x, "poison", range(half, width))
        x, width = simple(f, op, half, type, low, high), half
    return x


def pad_neutral(f: Function, op: str, type: Type, x: str, width: int, count: int) -> str:
    """Pad by the neutral element behind the first `count` elements."""
    if count == width:
        return x
    rest = f.splat(type, width, literal(type, neutral(op, type)))
    return f.shuffle(type, width, x, rest, [k if k < count else width + k for k in range(width)])


def emit_fold(f: Function, node: Node, slots: Slots) -> None:
    """Emit one result of many terms: strip by strip into a vector, whose elements are then folded."""
    value, (made,), op = node.source or node.args[0], node.results, node.param
    prepare(f, node.leaves or [value], _width(node, value))
    slots.allocate_if_stored(made)
    finish(f, made, _fold(f, op, value, value.size, _width(node, value), lambda k, width: Strip(k, width)))


def _width(node: Node, value: Value) -> int:
    return lanes_for([value, *node.inner, *node.leaves])


def _fold(
    f: Function, op: str, value: Value, count: int, width: int, index: Callable[[str, int], Position], unroll: int = 4
) -> str:
    """The fold of `count` neighbours.  index: a function from the first's index to the position of a strip."""
    type, full = value.type, count // width * width
    x = f.splat(type, width, literal(type, neutral(op, type)))

    def body(k: str, sum: str) -> list[str]:
        return [simple(f, op, width, type, sum, read(f, value, index(k, width)))]

    if full > unroll * width:
        (x,) = f.counted_loop(full, width, body, [(vector(type, width), x)])
    else:
        for k in range(0, full, width):
            (x,) = body(str(k), x)
    if full < count:
        last = read(f, value, index(str(full), width))
        x = simple(f, op, width, type, x, pad_neutral(f, op, type, last, width, count - full))
    return halves(f, op, type, x, width)


def emit_reduce(f: Function, node: Node, slots: Slots) -> None:
    """Emit many results, each of many terms (terms, results)."""
    value, (made,), (op, terms) = node.source or node.args[0], node.results, node.param
    type, width = value.type, _width(node, value)
    count, size = terms.shape
    slots.allocate(made)
    out = pointer_to(f, made)
    nothing = literal(type, neutral(op, type))
    prepare(f, node.leaves, width)
    if np.array_equal(terms, np.arange(terms.size).reshape(terms.shape)):  # rows: a vector of results at a time
        length = node.length or size
        rows = size // length

        def row(part: str) -> None:
            def strip(i: str) -> None:
                def body(k: str, sum: str) -> list[str]:
                    r = f.plus(f.times(k, rows), part)
                    at = RowStrip(length, r, f.times(r, length), i, width)
                    return [simple(f, op, width, type, sum, read(f, value, at))]

                (x,) = f.counted_loop(count, 1, body, [(vector(type, width), f.splat(type, width, nothing))])
                index = f.plus(f.times(part, length), i)
                f.store(type, width, x, f.pointer(out, type, index))

            f.counted_loop(length, width, strip)

        f.counted_loop(rows, 1, row)
    elif np.array_equal(terms.T, np.arange(terms.size).reshape(size, count)):  # each over its row

        def one(j: str) -> None:
            first = f.times(j, count)
            x = _fold(f, op, value, count, width, lambda k, width: RowStrip(count, j, first, k, width))
            f.store(type, 1, x, f.pointer(out, type, j))

        f.counted_loop(size, 1, one)
    else:

        def reduce_scattered(j: str) -> None:
            first = f.times(j, count)

            def body(k: str, sum: str) -> list[str]:
                at = f.plus(first, k)
                index = f.load(I32, 1, table_pointer(f, I32, terms.T.astype(np.int32), at))
                x = f.load(
                    type, 1, f.let(f"getelementptr inbounds {type.stored}, ptr {pointer_to(f, value)}, i32 {index}")
                )
                return [simple(f, op, 1, type, sum, x)]

            (x,) = f.counted_loop(count, 1, body, [(type.llvm, nothing)])
            f.store(type, 1, x, f.pointer(out, type, j))

        f.counted_loop(size, 1, reduce_scattered)


def emit_running(f: Function, node: Node, slots: Slots) -> None:
    (value,), (made,), (op, lines) = node.args, node.results, node.param
    type, (size, count) = value.type, lines.shape
    slots.allocate(made)
    table = lines.astype(np.int32)

    def one(j: str) -> None:
        first = f.times(j, count)

        def body(k: str, sum: str) -> list[str]:
            index = f.load(I32, 1, table_pointer(f, I32, table, f.plus(first, k)))
            x = f.load(type, 1, f.let(f"getelementptr inbounds {type.stored}, ptr {pointer_to(f, value)}, i32 {index}"))
            x = simple(f, op, 1, type, sum, x)
            f.store(type, 1, x, f.let(f"getelementptr inbounds {type.stored}, ptr {pointer_to(f, made)}, i32 {index}"))
            return [x]

        f.counted_loop(count, 1, body, [(type.llvm, literal(type, neutral(op, type)))])

    f.counted_loop(size, 1, one)


EMITTERS = {
    "join": emit_join, "empty": emit_empty, "put": emit_put, "put_if": emit_put, "scatter": emit_scatter,
    "fold": emit_fold, "reduce": emit_reduce, "running": emit_running,
}  # fmt: skip
