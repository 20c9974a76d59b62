"""Sums and other reductions, in an order that depends only on the number of elements: pairs, then pairs of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Graph, Value, digest, splat
from ..types import Type, type_of
from .elementwise import binary
from .table import Equation, element_indices, rule, size_of

SPELLED = 16  # up to this many terms are written out, element by element of the result
_OPERATIONS = {
    "reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min", "reduce_and": "and",
    "reduce_or": "or", "reduce_xor": "xor",
}  # fmt: skip


def neutral(op: str, type: Type) -> Any:
    if op in ("add", "or", "xor"):
        return 0
    if op == "mul":
        return 1
    if op == "and":  # all bits
        return True if type.kind == "b" else np.array(-1, np.int64).astype(type.dtype)[()]
    low = -np.inf if type.kind == "f" else False if type.kind == "b" else np.iinfo(type.dtype).min
    high = np.inf if type.kind == "f" else True if type.kind == "b" else np.iinfo(type.dtype).max
    return low if op == "max" else high


@rule(*_OPERATIONS)
def _reduce(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    op = _OPERATIONS[equation.primitive.name]
    return [reduce(graph, op, ins[0], _terms(equation))]


def _terms(equation: Equation) -> np.ndarray:
    """Indices (terms, results) of the terms of each result."""
    aval, axes = equation.invars[0].aval, tuple(equation.params["axes"])
    at = np.moveaxis(element_indices(aval), axes, range(len(axes)))
    count = int(np.prod(at.shape[: len(axes)], dtype=int))
    return at.reshape(count, size_of(equation.outvars[0].aval))


def reduce(graph: Graph, op: str, value: Value, terms: np.ndarray) -> Value:
    count, size = terms.shape
    if count == 0 or size == 0:
        return splat(graph, neutral(op, value.type), size, value.type)
    if count <= SPELLED:
        parts = [graph.view(value, row) for row in terms]
        while len(parts) > 1:
            pairs = [binary(graph, op, *parts[k : k + 2]) for k in range(0, len(parts) - 1, 2)]
            parts = pairs + parts[2 * len(pairs) :]
        return parts[0]
    if size == 1:
        return graph.single_result("fold", [graph.view(value, terms[:, 0])], op, op, 1, value.type)
    return graph.single_result("reduce", [graph.whole(value)], (op, terms), (op, digest(terms)), size, value.type)


@rule("argmax", "argmin")
def _extreme(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    """Index of the first of the largest or smallest; a NaN is larger and smaller than all."""
    op, x = "max" if equation.primitive.name == "argmax" else "min", ins[0]
    terms, type = _terms(equation), type_of(equation.outvars[0].aval.dtype)
    count, size = terms.shape
    straight = np.arange(terms.size).reshape(terms.shape)
    x = graph.view(x, terms)
    best = graph.view(reduce(graph, op, x, straight), np.broadcast_to(np.arange(size), terms.shape))
    here = binary(graph, "eq", x, best)
    if x.type.kind == "f":
        here = binary(graph, "or", here, binary(graph, "ne", x, x))
    number = graph.const(np.repeat(np.arange(count, dtype=type.dtype), size))
    return [reduce(graph, "min", graph.select(here, splat(graph, count, terms.size, type), number), straight)]


@rule("cumsum", "cumprod", "cummax", "cummin")
def _running(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    op = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}[equation.primitive.name]
    at = np.moveaxis(element_indices(equation.invars[0].aval), equation.params["axis"], -1)
    if not at.size:
        return ins
    lines = at.reshape(-1, at.shape[-1])
    lines = lines[:, ::-1] if equation.params["reverse"] else lines
    return [graph.node("running", [graph.whole(ins[0])], (op, lines)).result(ins[0].size, ins[0].type)]


@rule("dot_general")
def _dot(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    """Translate to products, then sums: only small matrices occur here."""
    (left, right), (batch_l, batch_r) = equation.params["dimension_numbers"]
    a, b, out = *(x.aval for x in equation.invars), equation.outvars[0].aval
    type = type_of(out.dtype)
    free_l = [k for k in range(len(a.shape)) if k not in (*left, *batch_l)]
    free_r = [k for k in range(len(b.shape)) if k not in (*right, *batch_r)]
    x = element_indices(a).transpose([*left, *batch_l, *free_l])
    y = element_indices(b).transpose([*right, *batch_r, *free_r])
    n, m = len(left), len(batch_l)
    x = x.reshape(x.shape + (1,) * len(free_r))
    y = y.reshape(y.shape[: n + m] + (1,) * len(free_l) + y.shape[n + m :])
    shape = np.broadcast_shapes(x.shape, y.shape)
    args = [graph.view(v, np.broadcast_to(at, shape)) for v, at in zip(ins, (x, y), strict=True)]
    args = [v if v.type == type else graph.compute("convert_element_type", v.size, type, (v,)) for v in args]
    products = graph.compute("mul", args[0].size, type, args)
    count = int(np.prod(shape[:n], dtype=int))
    return [reduce(graph, "add", products, np.arange(products.size).reshape(count, size_of(out)))]
