"""The kernel: warps take lanes from a counter and run each to its end. No lane waits for another.

It has one parameter, an array of pointers: the layout of `handler.py`, the arguments, the results, and the scratch: the
counter, then an arena for each warp.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..arena import THREADS
from ..handler import HEAD, POISON
from .dialect import Dialect

COUNTER = 256  # bytes before the first arena


def kernel_text(
    inputs: Sequence[tuple[int, int | None]], outputs: Sequence[tuple[int, int]], arena: int, dialect: Dialect,
    meets: bool,
) -> str:  # fmt: skip
    """LLVM's text of the kernel.  inputs, outputs: (offset in the arena, size), in bytes; the size of an open one is
    None. arena: its size.  meets: whether there are marks in the program."""
    count = len(inputs) + len(outputs) + 2
    take = [
        line
        for k, one in enumerate(inputs)
        for line in _take_input(k, one, 1 + k, HEAD + k, rows_of(k, inputs, outputs))
    ]
    give = [
        line for k, (offset, size) in enumerate(outputs) if size
        for line in _give_output(k, offset, size, 1 + len(inputs) + k, HEAD + len(inputs) + k)
    ]  # fmt: skip
    lines = [
        f"define {dialect.kernel} @lanes({dialect.buffers.format(count=count)} %buffers) #0 {{",
        "entry:",
        f"  %t = {dialect.thread}",
        *(f"  {line}" for line in dialect.warp),
        *pointer_of("layout", 0), *pointer_of("counter", count - 1),
        "  %lanes = load i64, ptr %layout",
        "  %flags.p = getelementptr i64, ptr %layout, i64 1", "  %flags = load i64, ptr %flags.p",
        f"  %poison.bit = and i64 %flags, {POISON}", "  %poison = icmp ne i64 %poison.bit, 0",
        f"  %arenas = getelementptr i8, ptr %counter, i64 {COUNTER}",
        f"  %far = mul i64 %warp, {arena}", "  %A = getelementptr i8, ptr %arenas, i64 %far",
        "  %takes = icmp eq i32 %t, 0",
        *(f"  {line}" for line in dialect.begin if meets),
        "  br label %next",
        "next:",
        "  %is.first = phi i1 [ true, %entry ], [ false, %run ]",
        "  br i1 %takes, label %take, label %taken",
        "take:", "  %mine = atomicrmw add ptr %counter, i32 1 monotonic", "  br label %taken",
        "taken:",
        "  %one = phi i32 [ 0, %next ], [ %mine, %take ]",
        f"  {dialect.sync}",
        f"  %number.of.lane = {dialect.shuffle.format(x='%one', source='0')}",
        "  %lane = zext i32 %number.of.lane to i64",
        "  %any = icmp slt i64 %lane, %lanes",
        "  br i1 %any, label %begin, label %end",
        "end:", *(f"  {line}" for line in dialect.end if meets), "  ret void",
        "begin:",
        "  %all.again = or i1 %is.first, %poison",
        "  br i1 %poison, label %fill, label %copy.in",
        "fill:", f"  call void @fill(ptr %A, i64 {arena // 4})", f"  {dialect.sync}", "  br label %copy.in",
        "copy.in:", *take,
        f"  {dialect.sync}",
        "  br label %run",
        "run:",
        "  call void @lane(ptr %A)",
        f"  {dialect.sync}",
        *give,
        f"  {dialect.sync}",
        "  br label %next",
        "}",
        *_spread_over("copy_words", "i32", 4, dialect), *_spread_over("copy_bytes", "i8", 1, dialect),
        *fill_with_nan(dialect),
    ]  # fmt: skip
    return "\n".join(lines)


def pointer_of(name: str, k: int) -> list[str]:
    """Set %name to number k of the buffers."""
    return [f"  %{name}.b = getelementptr ptr, ptr %buffers, i64 {k}", f"  %{name} = load ptr, ptr %{name}.b"]


def rows_of(k: int, inputs: Sequence[object], outputs: Sequence[object]) -> int:
    """Index in the layout of the number of rows of an open argument."""
    return HEAD + len(inputs) + len(outputs) + k


def number_of(name: str, k: int) -> list[str]:
    """Set %name to number k of the layout."""
    return [f"  %{name}.l = getelementptr i64, ptr %layout, i64 {k}", f"  %{name} = load i64, ptr %{name}.l"]


def of_lane(name: str, buffer: int, stride: int) -> list[str]:
    """Set %name to the start of this lane's part in a buffer."""
    return [
        *pointer_of(f"{name}.all", buffer), *number_of(f"{name}.stride", stride),
        f"  %{name}.o = mul i64 %{name}.stride, %lane",
        f"  %{name} = getelementptr i8, ptr %{name}.all, i64 %{name}.o",
    ]  # fmt: skip


def unless_shared(name: str, copy: str) -> list[str]:
    """Copy an argument: lanes that share it do so once."""
    return [
        f"  %{name}.own = icmp ne i64 %{name}.stride, 0", f"  %{name}.do = or i1 %{name}.own, %all.again",
        f"  br i1 %{name}.do, label %{name}.copy, label %{name}.end",
        f"{name}.copy:", copy, f"  br label %{name}.end", f"{name}.end:",
    ]  # fmt: skip


def _take_input(k: int, one: tuple[int, int | None], buffer: int, stride: int, rows: int) -> Iterable[str]:
    """Copy an input into the arena; what lanes share is still there from the previous lane."""
    offset, size = one
    if size == 0:
        return
    name = f"in{k}"
    yield from of_lane(name, buffer, stride)
    yield f"  %{name}.to = getelementptr i8, ptr %A, i64 {offset}"
    if size is None:
        yield from number_of(f"{name}.rows", rows)
        yield f"  store ptr %{name}, ptr %{name}.to"
        yield f"  %{name}.n = getelementptr i8, ptr %{name}.to, i64 8"
        yield f"  store i64 %{name}.rows, ptr %{name}.n"
        return
    yield from unless_shared(name, _copy(f"%{name}.to", f"%{name}", size))


def _give_output(k: int, offset: int, size: int, buffer: int, stride: int) -> Iterable[str]:
    name = f"out{k}"
    yield from of_lane(name, buffer, stride)
    yield f"  %{name}.of = getelementptr i8, ptr %A, i64 {offset}"
    yield _copy(f"%{name}", f"%{name}.of", size)


def _copy(to: str, of: str, size: int) -> str:
    if size % 4 == 0:
        return f"  call void @copy_words(ptr {to}, ptr {of}, i64 {size // 4})"
    return f"  call void @copy_bytes(ptr {to}, ptr {of}, i64 {size})"


def _spread_over(name: str, type: str, size: int, dialect: Dialect) -> list[str]:
    """Copy, with each thread copying every 32nd element."""
    return [
        f"define internal void @{name}(ptr %to, ptr %of, i64 %count) #0 {{",
        *_stride_header(dialect),
        f"  %from = getelementptr {type}, ptr %of, i64 %i",
        f"  %x = load {type}, ptr %from, align {size}",
        f"  %into = getelementptr {type}, ptr %to, i64 %i",
        f"  store {type} %x, ptr %into, align {size}",
        *_STRIDE,
    ]


def fill_with_nan(dialect: Dialect) -> list[str]:
    """Fill everything with NaN."""
    return [
        "define internal void @fill(ptr %to, i64 %count) #0 {",
        *_stride_header(dialect),
        "  %into = getelementptr i32, ptr %to, i64 %i",
        "  store i32 -1, ptr %into, align 4",
        *_STRIDE,
    ]


def _stride_header(dialect: Dialect) -> list[str]:
    return [
        "entry:",
        f"  %t = {dialect.thread}", "  %first = zext i32 %t to i64",
        "  br label %test",
        "test:",
        "  %i = phi i64 [ %first, %entry ], [ %more, %body ]",
        "  %on = icmp ult i64 %i, %count",
        "  br i1 %on, label %body, label %end",
        "body:",
    ]  # fmt: skip


_STRIDE = [f"  %more = add i64 %i, {THREADS}", "  br label %test", "end:", "  ret void", "}"]
