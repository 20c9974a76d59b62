"""Addresses of elements, and their indices: lines, tables, and indices clamped to an array."""

from __future__ import annotations

import numpy as np

from ..graph import Value
from ..types import I32, I64, Type, vector
from .arithmetic import apply, simple
from .function import Function, constant


def pointer_to(f: Function, value: Value, index: str | int = 0) -> str:
    """Address of an element of a stored value or of a constant."""
    if value.op == "const":
        pointer = f.pointer("@tables", value.type, index, f.module.table(value.param))
    else:
        assert value.slot is not None, f"{value.op} of {value.size} has no slot in memory"
        if value.open is not None:
            pointer = f.pointer(_open_part(f, value, 0, "ptr"), value.type, index)
        else:
            pointer = f.pointer("%A", value.type, index, value.slot.offset, value.slot)
    return pointer if isinstance(index, int) else check_bounds(f, value, pointer)


def check_bounds(f: Function, value: Value, pointer: str, width: int = 1) -> str:
    """Check and return a pointer, or a vector of pointers, to computed indices of an array. With CAROM_NATIVE_CHECK,
    indices outside the array are reported when the program runs (`machine.OUTSIDE`)."""
    if not f.module.checked or value.open is not None:
        return pointer
    T, B = ("i64", "i1") if width == 1 else (f"<{width} x i64>", f"<{width} x i1>")
    first = f.let(f"ptrtoint ptr {pointer_to(f, value)} to i64")
    here = f.let(f"ptrtoint {'ptr' if width == 1 else f'<{width} x ptr>'} {pointer} to {T}")
    far = f.let(f"sub {T} {here}, {f.splat(I64, width, first)}")
    beyond = f.let(f"icmp uge {T} {far}, {f.splat(I64, width, str(value.size * value.type.bytes))}")
    if width > 1:
        beyond = f.call("i1", f"llvm.vector.reduce.or.v{width}i1", [(B, beyond)])
    label = f"outside{next(f.module.labels)}"
    f.do(f"br i1 {beyond}, label %{label}, label %{label}.end")
    f.begin(label)
    f.module.declarations.setdefault("carom_native_outside", "declare void @carom_native_outside(i64, i64)")
    f.do(f"call void @carom_native_outside(i64 {value.id}, i64 {f.extract(I64, width, far, 0)})")
    f.do(f"br label %{label}.end")
    f.begin(f"{label}.end")
    return pointer


def open_rows(f: Function, value: Value) -> str:
    """Number of rows of an open array, i64."""
    return _open_part(f, value, 8, "i64")


def _open_part(f: Function, value: Value, byte: int, type: str) -> str:
    """Load one of the two entries of an open array in the arena: its address or its number of rows."""
    key = ("open", value.slot.offset, byte)
    x = f.look_up(key)
    return x or f.keep(key, f.let(f"load {type}, ptr {f.pointer('%A', None, 0, value.slot.offset + byte)}, align 8"))


def indices_from(f: Function, numbers: np.ndarray, i: str, width: int) -> str:
    """Entries i, i + 1, ... of a list of indices: a GPU computes them if it can, which is faster than a table."""
    step = step_of(numbers)
    if step is None or not f.module.runner.on_gpu:
        return from_table(f, numbers, i, width)
    here = simple(f, "add", width, I32, f.splat(I32, width, i), constant(I32, range(width), width))
    scaled = simple(f, "mul", width, I32, here, f.splat(I32, width, str(step)))
    return simple(f, "add", width, I32, scaled, f.splat(I32, width, str(int(numbers[0]))))


def from_table(f: Function, numbers: np.ndarray, i: str, width: int) -> str:
    """Elements i, i + 1, ... of a constant table of int32."""
    start = f.module.table(numbers.astype(np.int32))
    return f.load(I32, width, f.pointer("@tables", I32, index_of(i), start))


def step_of(numbers: np.ndarray) -> int | None:
    """Difference between neighbours, if it is always the same."""
    step = int(numbers[1]) - int(numbers[0]) if len(numbers) > 1 else 0
    return step if (np.diff(numbers) == step).all() else None


def _affine(f: Function, numbers: np.ndarray, i: str) -> str | None:
    """numbers[i] as a + b i, if they are on such a line."""
    first, step = int(numbers[0]), step_of(numbers)
    if step is None:
        return None
    x = i if step == 1 else f.times(i, step)
    return x if first == 0 else f.plus(x, first)


def index_in(f: Function, table: np.ndarray, i: str) -> str:
    """Entry i of a table of indices."""
    return _affine(f, table, i) or f.as_index(from_table(f, table, i, 1))


def table_pointer(f: Function, type: Type, data: np.ndarray, i: str | int = 0) -> str:
    return f.pointer("@tables", type, i, f.module.table(data))


def index_of(x: str) -> str | int:
    return x if x.startswith("%") else int(x)


def kept_within(f: Function, width: int, type: Type, x: str, most: int | str) -> str:
    """Clamp an index as i32 to 0 and `most` [a register of i64, or a number]."""
    x = f.freeze(type, width, x)
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
    """The sum of indices times strides, in i32.  array: the array of the offset, if that may be open."""
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
