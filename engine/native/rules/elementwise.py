"""Elementwise operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Graph, Value, splat
from ..types import BOOL, Type, Unsupported, type_of
from .table import Equation, element_indices, rule, size_of

# computed when the program is compiled, if the arguments are constants: numpy rounds these as machines do
_FOLDED = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "max": np.maximum, "min": np.minimum,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert,
    "select_n": lambda which, no, yes: np.where(which, yes, no), "convert_element_type": lambda x: x,
}  # fmt: skip


@rule(
    "add", "sub", "mul", "div", "rem", "neg", "abs", "max", "min", "sqrt", "rsqrt", "integer_pow", "square", "sign",
    "floor", "ceil", "round", "and", "or", "xor", "not", "eq", "ne", "lt", "le", "gt", "ge", "lt_to", "le_to", "eq_to",
    "is_finite", "population_count", "clz", "convert_element_type", "clamp", "select_n", "shift_left",
    "shift_right_logical", "shift_right_arithmetic", "bitcast_convert_type", "erf",
)  # fmt: skip
def elementwise(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    out = equation.outvars[0].aval
    if size_of(out) == 0:
        return [graph.const(np.zeros(0, out.dtype))]
    args = spread(graph, equation, ins)
    return [apply_primitive(graph, equation.primitive.name, equation.params, out.dtype, size_of(out), args)]


def spread(graph: Graph, equation: Equation, ins: list[Value]) -> list[Value]:
    """Broadcast the arguments to the size of the results."""
    out = equation.outvars[0].aval
    size = size_of(out)
    whole = []
    for x, var in zip(ins, equation.invars, strict=True):
        if x.size == size:
            whole.append(x)
        elif x.size == 1:
            whole.append(graph.repeat(x, size))
        else:
            whole.append(graph.view(x, np.broadcast_to(element_indices(var.aval), out.shape)))
    return whole


def apply_primitive(graph: Graph, name: str, p: dict[str, Any], dtype: np.dtype, size: int, args: list[Value]) -> Value:
    """Apply one operation to arguments that are all of this size.  name, p: those of jax's primitive."""
    type = type_of(dtype)
    if name == "convert_element_type" and args[0].type == type:
        return args[0]
    if name == "bitcast_convert_type" and args[0].type.bytes != type.bytes:
        raise Unsupported("bitcast_convert_type between types of different size")
    if name == "select_n" and len(args) == 3 and args[0].type == BOOL:
        if all(a.op == "const" for a in args):
            return graph.const(np.where(args[0].param, args[2].param, args[1].param))
        return graph.select(*args)
    if name in _FOLDED and all(a.op == "const" for a in args) and name != "select_n" and _foldable(name, args, type):
        with np.errstate(all="ignore"):
            return graph.const(_FOLDED[name](*(a.param for a in args)).astype(dtype))
    extra = {"integer_pow": "y", "round": "rounding_method"}.get(name)
    return graph.compute(name, size, type, args, int(p[extra]) if extra else None)


def _foldable(name: str, args: Sequence[Value], type: Type) -> bool:
    """Return whether constants may be folded: numpy converts floats outside the type's range to anything."""
    if name != "convert_element_type" or args[0].type.kind != "f" or type.kind not in "iu":
        return True
    x, limits = args[0].param, np.iinfo(type.dtype)
    return bool(((x >= limits.min) & (x < limits.max)).all())


@rule("add_any")
def _add(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    return [binary(graph, "add", *ins)]


def unary(graph: Graph, op: str, x: Value) -> Value:
    return graph.compute(op, x.size, BOOL if op == "is_finite" else x.type, (x,))


def binary(graph: Graph, op: str, x: Value, y: Value) -> Value:
    type = BOOL if op in ("lt", "le", "gt", "ge", "eq", "ne") else x.type
    return graph.compute(op, x.size, type, (x, y))


__all__ = ["apply_primitive", "binary", "elementwise", "splat", "spread", "unary"]
