"""Reading values into registers, at a position: the whole of a small one, or the position of a loop.

A value in a register is not read again. A view is read from its base: neighbours as one vector, one element for all as
a splat, a pattern within one or two vectors as a shuffle, and any other through a table of indices.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from ..graph import Value
from ..patterns import row_kind
from ..types import BOOL, I32, I64, literal, vector
from .addresses import (
    check_bounds,
    from_table,
    index_in,
    index_of,
    indices_from,
    offset,
    pointer_to,
    step_of,
    table_pointer,
)
from .arithmetic import apply, simple
from .columns import column
from .function import Function, constant, power_of_two


@dataclass(frozen=True)
class Whole:
    """All elements of a small value, in a vector of the next power of two."""

    def width(self, size: int) -> int:
        return power_of_two(size)


@dataclass(frozen=True)
class Strip:
    """Elements i, i + 1, ... of a long value.  i: a register, or a number."""

    i: str
    wide: int

    def width(self, _: int) -> int:
        return self.wide


@dataclass(frozen=True)
class RowStrip:
    """Elements of a long value that is read in rows of `length`: `column`, column + 1, ... of row r, which begins at
    element `first`. Each is a register; column may be a number."""

    length: int
    r: str
    first: str
    column: str
    wide: int

    def width(self, _: int) -> int:
        return self.wide


Position = Whole | Strip | RowStrip
WHOLE = Whole()


def read(f: Function, value: Value, at: Position) -> str:
    width, type = at.width(value.size), value.type
    if value.op == "const" and value.uniform:
        return f.splat(type, width, literal(type, value.param[0]))
    if value.op == "const" and isinstance(at, Whole):
        return constant(type, value.param, width)
    if value.uniform:
        key: Hashable = (value.id, "all", width)
        x = f.look_up(key)
        return x or f.keep(key, f.splat(type, width, element(f, value.base, _index_in_base(value, 0))))
    key = (value.id, at)
    x = f.look_up(key)
    if x is None and value.inline:
        x = f.keep(key, compute(f, value, at))
    if x is None:
        x = f.keep(key, _look(f, value, at) if value.op == "view" else _load(f, value, at, width))
    return x


def element(f: Function, value: Value, k: int) -> str:
    """One element of an array that is not a view."""
    if value.op == "const":
        return literal(value.type, value.param[k])
    known = f.look_up((value.id, WHOLE))
    if value.size == 1 and known:
        return known
    key = (value.id, "element", k)
    x = f.look_up(key)
    if x:
        return x
    if known:
        return f.keep(key, f.extract(value.type, power_of_two(value.size), known, k))
    return f.keep(key, f.load(value.type, 1, pointer_to(f, value, k)))


def element_at(f: Function, value: Value, i: str) -> str:
    """Element i, a register, of a stored value, of a constant, or of a view of these."""
    base = value.base
    if value is base:
        index: str = i
    else:
        index = index_in(f, value.param, i)
    return f.load(value.type, 1, pointer_to(f, base, index))


def _index_in_base(value: Value, k: int) -> int:
    return int(value.param[k]) if value.op == "view" else k


def _load(f: Function, value: Value, at: Position, width: int) -> str:
    if isinstance(at, Whole):
        return f.load(value.type, width, pointer_to(f, value))
    if isinstance(at, Strip):
        return f.load(value.type, width, pointer_to(f, value, at.i))
    start = f.pointer(pointer_to(f, value, at.first), value.type, index_of(at.column))
    return f.load(value.type, width, start)


def _look(f: Function, view: Value, at: Position) -> str:
    base, indices, width = view.base, view.param, at.width(view.size)
    if isinstance(at, Whole):
        return _look_at_all(f, view, width)
    if isinstance(at, Strip) and view.start is not None:
        return f.load(view.type, width, f.pointer(pointer_to(f, base, index_of(at.i)), view.type, view.start))
    if isinstance(at, RowStrip):
        kind = row_kind(view, at.length)
        if kind:
            start = row_start(f, view, at)
            if kind == "line":
                return f.load(view.type, width, f.pointer(start, view.type, index_of(at.column)))
            key = (view.id, "row", at.r, width)
            x = f.look_up(key)
            return x or f.keep(key, f.splat(view.type, width, f.load(view.type, 1, start)))
    i = _number(f, at)
    step = step_of(indices)
    if step is not None and step > 1 and base.op != "const" and not f.module.warp:
        return column(f, base, pointer_to(f, base), int(indices[0]), step, i, width)
    return gather(f, base, indices_from(f, indices, i, width), width)


def _number(f: Function, at: Strip | RowStrip) -> str:
    """Index of the first element at the position."""
    if isinstance(at, Strip):
        return at.i
    x = f.look_up(at)
    return x or f.keep(at, f.plus(at.first, at.column))


def _look_at_all(f: Function, view: Value, width: int) -> str:
    base, indices, type = view.base, view.param, view.type
    known = f.look_up((base.id, WHOLE))
    picks = [*(int(k) for k in indices), *[-1] * (width - len(indices))]
    if known:
        return f.shuffle(type, power_of_two(base.size), known, "poison", picks)
    if view.start is not None:
        return f.load(type, width, pointer_to(f, base, view.start))
    if f.module.warp and base.op != "const":
        first = int(indices[0])
        steps = [*(int(k) - first for k in indices), *[0] * (width - len(indices))]
        return gather(f, base, constant(I32, steps, width), width, pointer_to(f, base, first))
    low, high = int(indices.min()), int(indices.max())
    span = power_of_two(high - low + 1)
    if span <= f.module.small and low + span <= base.size + f.module.small:
        near = f.load(type, span, pointer_to(f, base, low))
        return f.shuffle(type, span, near, "poison", [k - low if k >= 0 else -1 for k in picks])
    step = step_of(indices)
    if step is not None and step > 1 and len(indices) > 4 and base.op != "const":
        return column(f, base, pointer_to(f, base), int(indices[0]), step, "0", width)
    if len(indices) <= 4 or base.op == "const":
        x = "poison"
        for k, index in enumerate(indices):
            x = f.let(f"insertelement {vector(type, width)} {x}, {type.llvm} {element(f, base, int(index))}, i32 {k}")
        return x
    return gather(f, base, from_table(f, indices, "0", width), width)


def gather(f: Function, array: Value, indices: str, width: int, start: str | None = None) -> str:
    """Gather the elements at `indices`, a vector of i32, counted from `start` [a pointer] or the array's start."""
    type, start = array.type, start or pointer_to(f, array)
    if width == 1:
        one = f.let(f"getelementptr inbounds {type.stored}, ptr {start}, i32 {indices}")
        return f.load(type, 1, check_bounds(f, array, one))
    pointers = f.let(f"getelementptr inbounds {type.stored}, ptr {start}, <{width} x i32> {indices}")
    check_bounds(f, array, pointers, width)
    stored = vector(type, width, True)
    suffix = "i8" if type.kind == "b" else type.suffix
    args = [
        (f"<{width} x ptr>", pointers), ("i32", str(type.bytes)),
        (f"<{width} x i1>", f"<{', '.join(['i1 true'] * width)}>"), (stored, "poison"),
    ]  # fmt: skip
    x = f.call(stored, f"llvm.masked.gather.v{width}{suffix}.v{width}p0", args)
    return f.let(f"trunc {stored} {x} to {vector(BOOL, width)}") if type.kind == "b" else x


def row_start(f: Function, view: Value, at: RowStrip) -> str:
    """Address of the row's start."""
    key = (view.id, "start", at.r)
    x = f.look_up(key)
    if x:
        return x
    firsts = view.param.reshape(-1, at.length)[:, 0]
    return f.keep(key, pointer_to(f, view.base, index_in(f, firsts, at.r)))


def compute(f: Function, value: Value, at: Position) -> str:
    width = at.width(value.size)
    if value.op == "build":
        x = "poison"
        for k, one in enumerate(built_of(f, value)):
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


def built_of(f: Function, value: Value) -> list[str]:
    """The elements from which a value is built."""
    return [element(f, a.base, int(a.param[0]) if a.op == "view" else 0) for a in value.args]


def window_start(f: Function, value: Value) -> str:
    """Address of a window."""
    array, (table, terms) = value.args[0], value.param
    start = f.look_up((value.id, "start"))
    if start is None:
        displacement = offset(f, 1, [(a.type, read(f, a, WHOLE)) for a in value.args[1:]], terms, array)
        first = pointer_to(f, array, int(table[0]))
        start = check_bounds(
            f, array, f.let(f"getelementptr inbounds {array.type.stored}, ptr {first}, i32 {displacement}")
        )
        f.keep((value.id, "start"), start)
    return start


def _window(f: Function, value: Value, at: Position, width: int) -> str:
    """A pattern of indices, moved by an offset that is the same for all."""
    array, (table, _), start = value.args[0], value.param, window_start(f, value)
    pattern = table - table[0]
    if value.size == 1:
        return f.load(value.type, 1, start)
    if not pattern.any():
        return f.splat(value.type, width, f.load(value.type, 1, start))
    i: str | int = 0 if isinstance(at, Whole) else _number(f, at)
    if (pattern == range(len(pattern))).all():
        if array.open is not None:
            return _load_some(f, value, width, f.pointer(start, value.type, i), i)
        return f.load(value.type, width, check_bounds(f, array, f.pointer(start, value.type, i)))
    indices = f.load(I32, width, table_pointer(f, I32, pattern.astype("int32"), i))
    return gather(f, array, indices, width, start)


def _load_some(f: Function, value: Value, width: int, pointer: str, i: str | int) -> str:
    """Load elements i, i + 1, ... of a value, and nothing behind its last: that memory may not be allocated."""
    if width == 1 or (isinstance(i, int) and i + width <= value.size):
        return f.load(value.type, width, pointer)
    index = I32 if f.module.runner.on_gpu else I64
    here = simple(f, "add", width, index, constant(index, range(width), width), f.splat(index, width, str(i)))
    there = f.let(f"icmp ult {vector(index, width)} {here}, {f.splat(index, width, str(value.size))}")
    stored, bits = vector(value.type, width, True), "i8" if value.type.kind == "b" else value.type.suffix
    args = [("ptr", pointer), ("i32", str(value.type.bytes)), (f"<{width} x i1>", there), (stored, "zeroinitializer")]
    x = f.call(stored, f"llvm.masked.load.v{width}{bits}.p0", args)
    return f.let(f"trunc {stored} {x} to {vector(BOOL, width)}") if value.type.kind == "b" else x


def _gather(f: Function, value: Value, at: Position, width: int) -> str:
    array, (table, terms) = value.args[0], value.param
    if isinstance(at, RowStrip) and _in_rows(value, at.length):
        return f.load(value.type, width, f.pointer(_gathered_row(f, value, at), value.type, index_of(at.column)))
    displacement = offset(f, width, [(a.type, read(f, a, at)) for a in value.args[1:]], terms)
    assert displacement is not None
    if (table == table[0]).all():
        return gather(f, array, displacement, width, pointer_to(f, array, int(table[0])))
    i: str | int = 0 if isinstance(at, Whole) else _number(f, at)
    indices = f.load(I32, width, table_pointer(f, I32, table.astype("int32"), i))
    return gather(f, array, simple(f, "add", width, I32, displacement, indices), width)


def _in_rows(value: Value, length: int) -> bool:
    """Return whether the gather takes whole rows of this length."""
    steps = np.diff(value.param[0].reshape(-1, length), axis=1)
    return (steps == 1).all() and all(
        a.uniform or (a.op == "view" and row_kind(a, length) == "same") for a in value.args[1:]
    )


def _gathered_row(f: Function, value: Value, at: RowStrip) -> str:
    """Address of the gathered row."""
    key = (value.id, "start", at.r)
    start = f.look_up(key)
    if start is None:
        array, (table, terms) = value.args[0], value.param
        one = RowStrip(at.length, at.r, at.first, "0", 1)
        displacement = offset(f, 1, [(a.type, read(f, a, one)) for a in value.args[1:]], terms)
        first = f.pointer(pointer_to(f, array), value.type, index_in(f, table[:: at.length], at.r))
        start = check_bounds(
            f, array, f.let(f"getelementptr inbounds {value.type.stored}, ptr {first}, i32 {displacement}")
        )
        f.keep(key, start)
    return start
