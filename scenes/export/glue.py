"""C functions around lanes, as LLVM's text: a world's arrays into the lane's memory, the lane, and back.

A world is one block: its save, its other arrays, and the memory of its lanes. A frame's lane has its own memory, in
which arrays that only a frame reads, or only a frame writes, stay. All other lanes share another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...engine.native.emit.function import escape
from ...engine.native.portable import float_mode
from ...engine.native.types import literal, type_of
from ..live.arguments import LONGEST, SHORTEST
from .fields import Fields
from .functions import Argument, LoweredFunction
from .programs import REFUSED

LINE = 64  # bytes: arrays begin at multiples of it
FRAME_READS, FRAME_LEAVES = ("parameters",), ("touched", "touching")  # fields in the frame's own memory
ZEROS = f"@zeros = internal constant [{LINE} x i8] zeroinitializer"
INTRINSICS = [
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
]  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """Addresses in a world's block of memory [bytes from its first].

    addresses: of each field.
    own: bytes that a reset fills.
    scratch: of the copy of a save that is loaded.
    frame, others: of the memory of lanes.
    size: of a world."""

    addresses: Mapping[str, int]
    own: int
    scratch: int
    frame: int
    others: int
    size: int

    @staticmethod
    def of(fields: Fields, functions: Sequence[LoweredFunction]) -> Layout:
        """The layout of a world.  functions: the frame is the first."""
        step, *rest = functions
        inputs = dict(zip(step.reads, step.text.inputs, strict=True))
        outputs = dict(zip(step.writes, step.text.outputs, strict=True))
        addresses, at = {"behind": 4}, len(fields.header)
        for name in fields.image:
            addresses[name] = at
            at += fields.all[name].bytes
        for name in sorted(set(fields.all) - set(addresses) - {*FRAME_READS, *FRAME_LEAVES}):
            at = _line(at)
            addresses[name] = at
            at += fields.all[name].bytes
        own = at
        scratch = _line(own)
        frame = _line(scratch + fields.most)
        others = _line(frame + step.text.arena)
        addresses |= {name: frame + inputs[name][0] for name in FRAME_READS}
        addresses |= {name: frame + outputs[name][0] for name in FRAME_LEAVES}
        return Layout(addresses, own, scratch, frame, others, _line(others + max(f.text.arena for f in rest)))

    def start(self, fields: Fields) -> bytes:
        """The first bytes of a world after a reset."""
        out = bytearray(self.own)
        out[: len(fields.header)] = fields.header
        for name, field in fields.all.items():
            if self.addresses[name] + field.bytes <= self.own:
                out[self.addresses[name] : self.addresses[name] + field.bytes] = field.start.tobytes()
        return bytes(out)


def function_text(name: str, made: LoweredFunction, fields: Fields, layout: Layout, triple: str) -> str:
    """A module: the lane, and the function name_... around it."""
    function, lane, real = made.function, made.text, _llvm_real(fields)
    arena = layout.frame if function.name == "step" else layout.others
    mode = float_mode(triple)
    body: list[str] = []
    for argument in function.arguments:
        if argument.kind == "save":
            body += _copy_save(fields, layout)
    if function.name == "step":
        body += _check_length(fields)
    body += [f"  %A = getelementptr i8, ptr %w, i64 {arena}"]
    known = {a.name: a for a in function.arguments}
    for k, (source, (offset, size)) in enumerate(zip(made.reads, lane.inputs, strict=True)):
        if not size:
            continue
        to = f"  %in.m{k} = getelementptr i8, ptr %A, i64 {offset}"
        argument = known.get(source.removesuffix("?"))
        if argument is not None and argument.kind in ("real", "int"):
            body += [to, f"  store {real if argument.kind == 'real' else 'i32'} %{source}, ptr %in.m{k}"]
        elif argument is not None and argument.kind in ("maybe", "bits"):
            body += [to, *_maybe(k, source, argument, size)]
        elif argument is not None:
            body += [to, f"  call void @llvm.memcpy.p0.p0.i64(ptr %in.m{k}, ptr %{source}, i64 {size}, i1 false)"]
        else:
            start = _saved_address(source, fields, layout) if source.startswith("save ") else layout.addresses[source]
            if start == arena + offset:
                continue
            body += [
                to,
                f"  %in.f{k} = getelementptr i8, ptr %w, i64 {start}",
                f"  call void @llvm.memcpy.p0.p0.i64(ptr %in.m{k}, ptr %in.f{k}, i64 {size}, i1 false)",
            ]
    body += [*mode.before, "  call void @lane(ptr %A)", *mode.after]
    results = []
    for k, (target, (offset, size)) in enumerate(zip(made.writes, lane.outputs, strict=True)):
        body.append(f"  %out.m{k} = getelementptr i8, ptr %A, i64 {offset}")
        if target == "result":
            results.append((k, size))
        elif layout.addresses[target] != arena + offset and size:
            body += [
                f"  %out.f{k} = getelementptr i8, ptr %w, i64 {layout.addresses[target]}",
                f"  call void @llvm.memcpy.p0.p0.i64(ptr %out.f{k}, ptr %out.m{k}, i64 {size}, i1 false)",
            ]
    body += _copy_results(function.arguments, results, function.returns, 8 if real == "double" else 4)
    head = ", ".join(["ptr %w", *(part for a in function.arguments for part in _parameters(a, real))])
    kind = "i32" if function.returns == "int" else "void"
    return "\n".join(
        [lane.text, ZEROS, *INTRINSICS, "declare i32 @llvm.smin.i32(i32, i32)", "declare i32 @llvm.smax.i32(i32, i32)",
         *mode.declared, f"define {kind} @{name}_{function.name}({head}) {{", "entry:", *body, "}"]
    )  # fmt: skip


def basics_text(name: str, fields: Fields, layout: Layout, pointers: Mapping[str, int], heap: bool) -> str:
    """The functions that compute nothing.  pointers: functions that return an array -> its offset.  heap: with
    those that allocate memory from C's library."""
    start, numbers = layout.start(fields), fields.all["parameters"].start.tobytes()
    lines = [
        f'@start = internal constant [{len(start)} x i8] c"{escape(start)}", align 64',
        f'@parameters = internal constant [{len(numbers)} x i8] c"{escape(numbers)}", align 64',
        *INTRINSICS,
        f"define i32 @{name}_size() {{", f"  ret i32 {layout.size}", "}",
        f"define void @{name}_reset(ptr %w) {{",
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %w, ptr @start, i64 {len(start)}, i1 false)",
        f"  %p = getelementptr i8, ptr %w, i64 {layout.addresses['parameters']}",
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr @parameters, i64 {len(numbers)}, i1 false)",
        "  ret void", "}",
        f"define void @{name}_init(ptr %w) {{",
        f"  call void @llvm.memset.p0.i64(ptr %w, i8 0, i64 {layout.size}, i1 false)",
        f"  call void @{name}_reset(ptr %w)",
        "  ret void", "}",
        f"define i32 @{name}_save(ptr %w, ptr %save) {{",
        f"  %n = getelementptr i8, ptr %w, i64 {layout.addresses['saved']}",
        "  %size = load i32, ptr %n", "  %wide = zext i32 %size to i64",
        "  call void @llvm.memcpy.p0.p0.i64(ptr %save, ptr %w, i64 %wide, i1 false)",
        "  ret i32 %size", "}",
    ]  # fmt: skip
    for function, offset in pointers.items():
        lines += [
            f"define ptr @{name}_{function}(ptr %w) {{",
            f"  %p = getelementptr i8, ptr %w, i64 {offset}",
            "  ret ptr %p",
            "}",
        ]
    if heap:  # the address of the allocated memory is kept in front of the world
        lines += [
            "declare ptr @malloc(i64)", "declare void @free(ptr)",
            f"define ptr @{name}_create() {{",
            "entry:",
            f"  %raw = call ptr @malloc(i64 {layout.size + LINE + 8})",
            "  %none = icmp eq ptr %raw, null",
            "  br i1 %none, label %end, label %made",
            "made:",
            "  %n = ptrtoint ptr %raw to i64", f"  %up = add i64 %n, {LINE + 7}", f"  %at = and i64 %up, -{LINE}",
            "  %w = inttoptr i64 %at to ptr", "  %kept = getelementptr i8, ptr %w, i64 -8",
            "  store ptr %raw, ptr %kept", f"  call void @{name}_init(ptr %w)",
            "  br label %end",
            "end:",
            "  %out = phi ptr [ null, %entry ], [ %w, %made ]",
            "  ret ptr %out", "}",
            f"define void @{name}_free(ptr %w) {{",
            "entry:",
            "  %none = icmp eq ptr %w, null",
            "  br i1 %none, label %end, label %there",
            "there:",
            "  %kept = getelementptr i8, ptr %w, i64 -8", "  %raw = load ptr, ptr %kept",
            "  call void @free(ptr %raw)",
            "  br label %end",
            "end:",
            "  ret void", "}",
        ]  # fmt: skip
    return "\n".join(lines)


def _parameters(argument: Argument, real: str) -> list[str]:
    if argument.kind in ("real", "int"):
        return [f"{real if argument.kind == 'real' else 'i32'} %{argument.name}"]
    more = {"save": ["i32 %size"], "rows": ["i32 %room"]}.get(argument.kind, [])
    return [f"ptr %{argument.name}", *more]


def _maybe(k: int, source: str, argument: Argument, size: int) -> list[str]:
    """An array that may be NULL: its numbers, or whether it is given."""
    name = argument.name
    if source.endswith("?"):
        return [
            f"  %in.is{k} = icmp ne ptr %{name}, null", f"  %in.whole{k} = zext i1 %in.is{k} to i32",
            f"  store i32 %in.whole{k}, ptr %in.m{k}",
        ]  # fmt: skip
    return [  # of NULL, zeros: nobody looks at them
        f"  %in.no{k} = icmp eq ptr %{name}, null",
        f"  %in.from{k} = select i1 %in.no{k}, ptr @zeros, ptr %{name}",
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %in.m{k}, ptr %in.from{k}, i64 {size}, i1 false)",
    ]


def _copy_save(fields: Fields, layout: Layout) -> list[str]:
    """Copy a save into the world's scratch; a short save, in which no body sleeps, is padded as if all were awake."""
    motors = fields.all["last_motors"].bytes
    return [
        f"  %short = icmp eq i32 %size, {fields.awake}", f"  %long = icmp eq i32 %size, {fields.most}",
        "  %fits = or i1 %short, %long",
        "  br i1 %fits, label %taken, label %other",
        "other:", "  ret i32 1001",
        "taken:",
        f"  %s = getelementptr i8, ptr %w, i64 {layout.scratch}",
        f"  call void @llvm.memset.p0.i64(ptr %s, i8 -1, i64 {fields.most - motors}, i1 false)",
        f"  %z = getelementptr i8, ptr %s, i64 {fields.most - motors}",
        f"  call void @llvm.memset.p0.i64(ptr %z, i8 0, i64 {motors}, i1 false)",
        "  %wide = zext i32 %size to i64",
        "  call void @llvm.memcpy.p0.p0.i64(ptr %s, ptr %save, i64 %wide, i1 false)",
    ]  # fmt: skip


def _check_length(fields: Fields) -> list[str]:
    """Refuse a frame's length before the lane overwrites the last frame's results."""
    real = fields.all["q"].start.dtype
    least, most = (literal(type_of(real), real.type(x)) for x in (SHORTEST, LONGEST))
    kind = _llvm_real(fields)
    return [
        f"  %long = fcmp oge {kind} %dt, {least}", f"  %short = fcmp ole {kind} %dt, {most}",
        "  %valid = and i1 %long, %short",  # false for NaN
        "  br i1 %valid, label %taken, label %refused",
        "refused:", f"  ret i32 {REFUSED}",
        "taken:",
    ]  # fmt: skip


def _saved_address(source: str, fields: Fields, layout: Layout) -> int:
    name = source.removeprefix("save ")
    return layout.scratch + (0 if name == "header" else layout.addresses[name])


def _copy_results(arguments: Sequence[Argument], results: list[tuple[int, int]], returns: str, real: int) -> list[str]:
    """Copy results to the caller's pointers.  real: bytes of a real number."""
    lines, remaining = [], list(results)
    if returns == "int":
        lines.append(f"  %code = load i32, ptr %out.m{remaining.pop(0)[0]}")
    for argument in arguments:
        if argument.kind == "out":
            k, size = remaining.pop(0)
            lines.append(
                f"  call void @llvm.memcpy.p0.p0.i64(ptr %{argument.name}, ptr %out.m{k}, i64 {size}, i1 false)"
            )
        if argument.kind == "rows":
            k, size = remaining.pop(0)
            wide = 4 if argument.type == "int" else real
            lines += [
                "  %some = call i32 @llvm.smin.i32(i32 %code, i32 %room)",
                "  %fit = call i32 @llvm.smax.i32(i32 %some, i32 0)", "  %many = zext i32 %fit to i64",
                f"  %row.bytes = mul i64 %many, {argument.size * wide}",
                f"  call void @llvm.memcpy.p0.p0.i64(ptr %{argument.name}, ptr %out.m{k}, i64 %row.bytes, i1 false)",
            ]  # fmt: skip
    return [*lines, "  ret i32 %code" if returns == "int" else "  ret void"]


def _llvm_real(fields: Fields) -> str:
    return "double" if fields.all["q"].start.dtype.itemsize == 8 else "float"


def _line(n: int) -> int:
    return -(-n // LINE) * LINE
