"""Denormal numbers flushed to 0 by instructions, for machines without a mode for it, e.g. WebAssembly.

An operation that may return a denormal number is followed by instructions that make it 0 of the same sign; since none
is produced, none is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from .types import F32, F64, Type, literal

_MAKERS = re.compile(r"^  (%\S+) = (?:fadd|fsub|fmul|fdiv) (<(\d+) x )?(float|double)>? ")
_NARROWED = re.compile(r"^  (%\S+) = fptrunc .* to (<(\d+) x )?(float)>?$")
_TYPES = {"float": F32, "double": F64}


def flush_denormals(text: str) -> str:
    """Return LLVM's text of a lane with denormal results made 0."""
    declared: set[str] = set()
    lines = [made for line in text.split("\n") for made in _flush_line(line, declared)]
    known = set(re.findall(r"^declare \S.*? @([\w.]+)\(", text, re.M))
    return "\n".join([*lines, *(x for x in sorted(declared) if x.partition("@")[2].partition("(")[0] not in known)])


def _flush_line(line: str, declared: set[str]) -> Iterator[str]:
    match = _MAKERS.match(line) or _NARROWED.match(line)
    if match is None:
        yield line
        return
    register, _, count, kind = match.groups()
    type, width = _TYPES[kind], int(count or 1)
    T, suffix = (f"<{width} x {kind}>", f"v{width}{type.suffix}") if count else (kind, type.suffix)
    declared.add(f"declare {T} @llvm.fabs.{suffix}({T}) ")
    declared.add(f"declare {T} @llvm.copysign.{suffix}({T}, {T}) ")
    raw, size, low, zero = (f"{register}.{x}" for x in ("raw", "size", "low", "zero"))
    B = f"<{width} x i1>" if count else "i1"
    yield line.replace(f"  {register} =", f"  {raw} =", 1)
    yield f"  {size} = call {T} @llvm.fabs.{suffix}({T} {raw})"
    yield f"  {low} = fcmp olt {T} {size}, {_all(type, width, count, np.finfo(type.dtype).tiny)}"
    yield f"  {zero} = call {T} @llvm.copysign.{suffix}({T} zeroinitializer, {T} {raw})"
    yield f"  {register} = select {B} {low}, {T} {zero}, {T} {raw}"


def _all(type: Type, width: int, vector: str | None, x: float) -> str:
    one = literal(type, x)
    return f"<{', '.join([f'{type.llvm} {one}'] * width)}>" if vector else one
