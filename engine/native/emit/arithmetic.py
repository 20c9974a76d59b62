"""Elementwise operations as instructions, for vectors of any width.

No operation is contracted or reordered: results are the same on every machine and in vectors of every width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import BOOL, F32, F64, I32, I64, Type, Unsupported, literal, vector
from .function import Function

Operands = list[tuple[Type, str]]
Named = tuple[str, Any]  # an operation's name and its parameter, as the exponent of a power
Emitter = Callable[[Function, int, Type, Operands, Named], str]
OPERATIONS: dict[str, Emitter] = {}


def operation(*names: str) -> Callable[[Emitter], Emitter]:
    def enter(emitter: Emitter) -> Emitter:
        OPERATIONS.update(dict.fromkeys(names, emitter))
        return emitter

    return enter


def apply(f: Function, op: str, width: int, type: Type, operands: Operands, param: Any = None) -> str:
    """Apply an operation of the table."""
    if op not in OPERATIONS:
        raise Unsupported(f"the operation {op}")
    return OPERATIONS[op](f, width, type, operands, (op, param))


def simple(f: Function, op: str, width: int, type: Type, *xs: str) -> str:
    """Emit an operation whose operands are all of the result's type."""
    return apply(f, op, width, type, [(type, x) for x in xs])


def intrinsic(f: Function, name: str, width: int, type: Type, *xs: str) -> str:
    T = vector(type, width)
    full = f"llvm.{name}.{'' if width == 1 else f'v{width}'}{type.suffix}"
    return f.call(T, full, [(T, x) for x in xs])


def compare(f: Function, how: str, width: int, type: Type, x: str, y: str) -> str:
    """Compare by how: eq ne lt le gt ge; comparisons with NaN are false, except ne."""
    if type.kind == "f":
        return f.let(f"fcmp {'une' if how == 'ne' else 'o' + how} {vector(type, width)} {x}, {y}")
    sign = "" if how in ("eq", "ne") else "s" if type.kind == "i" else "u"
    return f.let(f"icmp {sign}{how} {vector(type, width)} {x}, {y}")


def choose(f: Function, width: int, type: Type, which: str, yes: str, no: str) -> str:
    T = vector(type, width)
    return f.let(f"select {vector(BOOL, width)} {which}, {T} {yes}, {T} {no}")


def number(f: Function, width: int, type: Type, x: float) -> str:
    return f.splat(type, width, literal(type, x))


@operation("copy")
def _copy(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    return xs[0][1]


@operation("add", "sub", "mul")
def _ring(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    (_, x), (_, y) = xs
    if type.kind == "b":  # as in XLA: or, exclusive or, and
        return f.let(f"{ {'add': 'or', 'sub': 'xor', 'mul': 'and'}[p[0]] } {vector(type, width)} {x}, {y}")
    return f.let(f"{'f' if type.kind == 'f' else ''}{p[0]} {vector(type, width)} {x}, {y}")


@operation("square")
def _square(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    return simple(f, "mul", width, type, xs[0][1], xs[0][1])


@operation("div", "rem")
def _divide(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    (_, x), (_, y) = xs
    T, op = vector(type, width), p[0]
    if type.kind == "f":
        return f.let(f"fdiv {T} {x}, {y}") if op == "div" else _remainder(f, width, type, x, y)
    # division by 0 gives -1 and the remainder x; the smallest number by -1 gives itself and 0
    y = f.freeze(type, width, y)
    one, zero, minus = (number(f, width, type, k) for k in (1, 0, -1 if type.kind == "i" else (1 << type.bits) - 1))
    by_zero = compare(f, "eq", width, type, y, zero)
    safe = choose(f, width, type, by_zero, one, y)
    by_minus = compare(f, "eq", width, type, y, minus) if type.kind == "i" else None
    if by_minus:
        safe = choose(f, width, type, by_minus, one, safe)
    made = f.let(f"{'s' if type.kind == 'i' else 'u'}{op} {T} {x}, {safe}")
    if by_minus:
        other = f.let(f"sub {T} {zero}, {x}") if op == "div" else zero
        made = choose(f, width, type, by_minus, other, made)
    return choose(f, width, type, by_zero, minus if op == "div" else x, made)


def _remainder(f: Function, width: int, type: Type, x: str, y: str) -> str:
    """C's fmod, which is exact; libraries differ for denormal numbers, which count as 0 here."""
    least = number(f, width, type, np.finfo(type.dtype).tiny)

    def denormal(x: str) -> str:
        return compare(f, "lt", width, type, intrinsic(f, "fabs", width, type, x), least)

    def flush(x: str) -> str:
        zero = intrinsic(f, "copysign", width, type, number(f, width, type, 0.0), x)
        return choose(f, width, type, denormal(x), zero, x)

    made = flush(library(f, "fmod", width, type, [flush(x), y]))
    return choose(f, width, type, denormal(y), number(f, width, type, float("nan")), made)


@operation("neg")
def _negate(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    T = vector(type, width)
    return (
        f.let(f"fneg {T} {xs[0][1]}")
        if type.kind == "f"
        else f.let(f"sub {T} zeroinitializer, {xs[0][1]}")
        if width > 1
        else f.let(f"sub {T} 0, {xs[0][1]}")
    )


@operation("abs")
def _absolute(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    x = xs[0][1]
    if type.kind == "f":
        return intrinsic(f, "fabs", width, type, x)
    if type.kind != "i":
        return x
    below = compare(f, "lt", width, type, x, number(f, width, type, 0))
    return choose(f, width, type, below, simple(f, "neg", width, type, x), x)


@operation("max", "min")
def _extreme(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    (_, x), (_, y) = xs
    if type.kind == "b":
        return f.let(f"{'or' if p[0] == 'max' else 'and'} {vector(type, width)} {x}, {y}")
    first = compare(f, "gt" if p[0] == "max" else "lt", width, type, x, y)
    if type.kind == "f":  # a NaN wins; of +0 and -0 the second is taken; XLA takes +0 for the larger
        first = f.let(f"or {vector(BOOL, width)} {first}, {f.let(f'fcmp uno {vector(type, width)} {x}, {x}')}")
    return choose(f, width, type, first, x, y)


@operation("clamp")
def _clamp(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    low, x, high = (x for _, x in xs)
    return simple(f, "min", width, type, simple(f, "max", width, type, low, x), high)


@operation("sqrt", "floor", "ceil")
def _call_intrinsic(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    return intrinsic(f, p[0], width, type, xs[0][1])


@operation("rsqrt")
def _rsqrt(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    root = intrinsic(f, "sqrt", width, type, xs[0][1])
    return f.let(f"fdiv {vector(type, width)} {number(f, width, type, 1)}, {root}")


@operation("round")
def _round(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    return intrinsic(f, "roundeven" if p[1] == 1 else "round", width, type, xs[0][1])


@operation("integer_pow")
def _power(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    exponent, base, made = abs(p[1]), xs[0][1], None
    while exponent:
        if exponent & 1:
            made = base if made is None else simple(f, "mul", width, type, made, base)
        exponent >>= 1
        if exponent:
            base = simple(f, "mul", width, type, base, base)
    made = made or number(f, width, type, 1)
    return made if p[1] >= 0 else f.let(f"fdiv {vector(type, width)} {number(f, width, type, 1)}, {made}")


@operation("sign")
def _sign(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    x, zero = xs[0][1], number(f, width, type, 0)
    above = compare(f, "gt", width, type, x, zero)
    rest = x
    if type.kind != "u":
        below = compare(f, "lt", width, type, x, zero)
        rest = choose(f, width, type, below, number(f, width, type, -1), x)
    return choose(f, width, type, above, number(f, width, type, 1), rest)


@operation("and", "or", "xor")
def _bitwise(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    return f.let(f"{p[0]} {vector(type, width)} {xs[0][1]}, {xs[1][1]}")


@operation("not")
def _not(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    return f.let(f"xor {vector(type, width)} {xs[0][1]}, {number(f, width, type, 1 if type.kind == 'b' else -1)}")


@operation("shift_left", "shift_right_logical", "shift_right_arithmetic")
def _shift(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    """Shift; for shifts by more than the number of bits the result is 0, or the sign."""
    (_, x), (_, y) = xs
    T = vector(type, width)
    most = number(f, width, type, type.bits - 1)
    far = f.let(f"icmp ugt {T} {y}, {most}")
    by = choose(f, width, type, far, most, y)
    op = {"shift_left": "shl", "shift_right_logical": "lshr", "shift_right_arithmetic": "ashr"}[p[0]]
    made = f.let(f"{op} {T} {x}, {by}")
    return made if op == "ashr" else choose(f, width, type, far, number(f, width, type, 0), made)


@operation("eq", "ne", "lt", "le", "gt", "ge")
def _compare(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    return compare(f, p[0], width, xs[0][0], xs[0][1], xs[1][1])


@operation("lt_to", "le_to", "eq_to")
def _total_order(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    """-NaN < -inf < ... < -0 < +0 < ... < inf < NaN: the bits of floats as integers, reversed below 0."""
    t, (x, y) = xs[0][0], (x for _, x in xs)
    if t.kind == "f":
        I, T = (I64 if t is F64 else I32), vector(t, width)
        ordered = []
        for value in (x, y):
            bits = f.let(f"bitcast {T} {value} to {vector(I, width)}")
            sign = simple(f, "shift_right_arithmetic", width, I, bits, number(f, width, I, I.bits - 1))
            low = simple(f, "and", width, I, sign, number(f, width, I, (1 << (I.bits - 1)) - 1))
            ordered.append(simple(f, "xor", width, I, bits, low))
        t, (x, y) = I, ordered
    return compare(f, p[0][:2], width, t, x, y)


@operation("select_n")
def _select(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    (t, which), *cases = xs
    if t.kind == "b":
        return choose(f, width, type, which, cases[1][1], cases[0][1])
    made = cases[-1][1]
    for k in range(len(cases) - 2, -1, -1):
        here = f.let(f"icmp sle {vector(t, width)} {which}, {number(f, width, t, k)}")
        made = choose(f, width, type, here, cases[k][1], made)
    return made


@operation("population_count")
def _ones(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    return intrinsic(f, "ctpop", width, type, xs[0][1])


@operation("clz")
def _leading_zeros(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    T = vector(type, width)
    name = f"llvm.ctlz.{'' if width == 1 else f'v{width}'}{type.suffix}"
    return f.call(T, name, [(T, xs[0][1]), ("i1", "false")])


@operation("is_finite")
def _is_finite(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    t, x = xs[0]
    if t.kind != "f":
        return number(f, width, BOOL, True)
    return compare(f, "lt", width, t, intrinsic(f, "fabs", width, t, x), number(f, width, t, float("inf")))


@operation("bitcast_convert_type")
def _bitcast(f: Function, width: int, type: Type, xs: Operands, _: Named) -> str:
    t, x = xs[0]
    return x if t.llvm == type.llvm else f.let(f"bitcast {vector(t, width)} {x} to {vector(type, width)}")


@operation("convert_element_type")
def convert(f: Function, width: int, type: Type, xs: Operands, _: Named | None = None) -> str:
    t, x = xs[0]
    S, T = vector(t, width), vector(type, width)
    if t == type or (t.kind != "f" and type.kind in "iu" and t.bits == type.bits):
        return x
    if type.kind == "b":
        return compare(f, "ne", width, t, x, number(f, width, t, 0))
    if type.kind == "f":
        if t.kind == "f":
            return f.let(f"{'fpext' if type is F64 else 'fptrunc'} {S} {x} to {T}")
        return f.let(f"{'sitofp' if t.kind == 'i' else 'uitofp'} {S} {x} to {T}")
    if t.kind == "f":  # numbers out of range become the nearest in range, NaN becomes 0
        wide = lambda u: f"{'' if width == 1 else f'v{width}'}{u.suffix}"  # noqa: E731
        name = f"llvm.fpto{'s' if type.kind == 'i' else 'u'}i.sat.{wide(type)}.{wide(t)}"
        return f.call(T, name, [(S, x)])
    if type.bits < t.bits:
        return f.let(f"trunc {S} {x} to {T}")
    return f.let(f"{'sext' if t.kind == 'i' else 'zext'} {S} {x} to {T}")


@operation("erf")
def _erf(f: Function, width: int, type: Type, xs: Operands, p: Named) -> str:
    return library(f, p[0], width, type, [x for _, x in xs])


def library(f: Function, name: str, width: int, type: Type, xs: list[str]) -> str:
    """Call a function of C's mathematics library, element by element."""
    if type not in (F64, F32):
        raise Unsupported(f"{name} of {type.name}")
    name += "f" if type is F32 else ""
    out, parts = "poison", []
    for k in range(width):
        args = [(type.llvm, f.extract(type, width, x, k)) for x in xs]
        parts.append(f.call(type.llvm, name, args, "#1"))
    if width == 1:
        return parts[0]
    for k, x in enumerate(parts):
        out = f.let(f"insertelement {vector(type, width)} {out}, {type.llvm} {x}, i32 {k}")
    return out
