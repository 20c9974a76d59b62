"""The kernel in which each thread runs a lane: warps take 32 lanes at a time from a counter.

Its parameter is that of `kernel.py`. The scratch holds the counter, then for each warp the arenas of 32 lanes,
interleaved (`beside.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..arena import THREADS
from ..handler import HEAD, POISON
from .dialect import Dialect
from .kernel import COUNTER, fill_with_nan, number_of, of_lane, pointer_of, rows_of, unless_shared

_WORDS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


def kernel_of_threads(
    inputs: Sequence[tuple[int, int | None]],
    outputs: Sequence[tuple[int, int]],
    elements: Sequence[int],
    arena: int,
    dialect: Dialect,
) -> str:
    """LLVM's text of the kernel.  inputs, outputs: (offset in the arena, size), in bytes; the size of an open one is
    None. elements: bytes of an element of each.  arena: its size."""
    count = len(inputs) + len(outputs) + 2
    take = [
        line for k, (one, element) in enumerate(zip(inputs, elements, strict=False))
        for line in _take_input(k, one, element, 1 + k, HEAD + k, rows_of(k, inputs, outputs))
    ]  # fmt: skip
    give = [
        line for k, (one, element) in enumerate(zip(outputs, elements[len(inputs) :], strict=True)) if one[1]
        for line in _give_output(k, *one, element, 1 + len(inputs) + k, HEAD + len(inputs) + k)
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
        f"  %far = mul i64 %warp, {arena * THREADS}", "  %A = getelementptr i8, ptr %arenas, i64 %far",
        "  %takes = icmp eq i32 %t, 0",
        "  br label %next",
        "next:",
        "  %is.first = phi i1 [ true, %entry ], [ false, %done ]",
        "  br i1 %takes, label %take, label %taken",
        "take:", f"  %mine = atomicrmw add ptr %counter, i32 {THREADS} monotonic", "  br label %taken",
        "taken:",
        "  %one = phi i32 [ 0, %next ], [ %mine, %take ]",
        f"  {dialect.sync}",
        f"  %number.of.first = {dialect.shuffle.format(x='%one', source='0')}",
        "  %first.lane = zext i32 %number.of.first to i64",
        "  %any = icmp slt i64 %first.lane, %lanes",
        "  br i1 %any, label %begin, label %end",
        "end:", "  ret void",
        "begin:",
        "  %all.again = or i1 %is.first, %poison",
        "  br i1 %poison, label %fill, label %filled",
        "fill:", f"  call void @fill(ptr %A, i64 {arena // 4 * THREADS})", f"  {dialect.sync}", "  br label %filled",
        "filled:",
        "  %beside = zext i32 %t to i64", "  %lane = add i64 %first.lane, %beside",
        "  %is.one = icmp slt i64 %lane, %lanes",
        "  br i1 %is.one, label %copy.in, label %done",
        "copy.in:", *take,
        "  call void @lane(ptr %A)",
        *give,
        "  br label %done",
        "done:",
        f"  {dialect.sync}",
        "  br label %next",
        "}",
        *(line for size in sorted(set(elements)) for line in _copies(size, dialect)),
        *fill_with_nan(dialect),
    ]  # fmt: skip
    return "\n".join(lines)


def _take_input(
    k: int, one: tuple[int, int | None], element: int, buffer: int, stride: int, rows: int
) -> Iterable[str]:
    """Copy an input into the arena; what lanes share is still there from the previous lane."""
    offset, size = one
    if size == 0:
        return
    name = f"in{k}"
    yield from of_lane(name, buffer, stride)
    yield f"  %{name}.to = getelementptr i8, ptr %A, i64 {offset * THREADS}"
    if size is None:
        yield from number_of(f"{name}.rows", rows)
        yield f"  %{name}.own = getelementptr i64, ptr %{name}.to, i32 %t"
        yield f"  store ptr %{name}, ptr %{name}.own"
        yield f"  %{name}.n = getelementptr i64, ptr %{name}.own, i32 {THREADS}"
        yield f"  store i64 %{name}.rows, ptr %{name}.n"
        return
    yield from unless_shared(name, f"  call void @take{element}(ptr %{name}.to, ptr %{name}, i32 {size // element})")


def _give_output(k: int, offset: int, size: int, element: int, buffer: int, stride: int) -> Iterable[str]:
    name = f"out{k}"
    yield from of_lane(name, buffer, stride)
    yield f"  %{name}.of = getelementptr i8, ptr %A, i64 {offset * THREADS}"
    yield f"  call void @give{element}(ptr %{name}, ptr %{name}.of, i32 {size // element})"


def _copies(size: int, dialect: Dialect) -> list[str]:
    """Functions for elements of a number of bytes: `take` into the arena, `give` out of it."""
    word = _WORDS[size]
    lines: list[str] = []
    for name, load, store in (("take", "%plain", "%woven"), ("give", "%woven", "%plain")):
        to, of = ("%woven.all", "%plain.all") if name == "take" else ("%plain.all", "%woven.all")
        lines += [
            f"define internal void @{name}{size}(ptr {to}, ptr {of}, i32 %count) #0 {{",
            "entry:",
            f"  %t = {dialect.thread}",
            "  br label %body",
            "body:",
            "  %i = phi i32 [ 0, %entry ], [ %more, %body ]",
            f"  %plain = getelementptr {word}, ptr %plain.all, i32 %i",
            f"  %row = getelementptr [{THREADS} x {word}], ptr %woven.all, i32 %i",
            f"  %woven = getelementptr {word}, ptr %row, i32 %t",
            f"  %x = load {word}, ptr {load}", f"  store {word} %x, ptr {store}",
            "  %more = add i32 %i, 1",
            "  %on = icmp ult i32 %more, %count",
            "  br i1 %on, label %body, label %end",
            "end:", "  ret void", "}",
        ]  # fmt: skip
    return lines
