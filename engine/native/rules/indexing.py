"""Reading and writing at indices that are known only when the program runs.

A position is a sum: a constant table, and for each index its value, clamped to its bounds, times a stride.
`terms` lists (stride, the largest index) of each index; for the rows of an open array the largest index is negative,
counted from the number of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode

from ..graph import Graph, Value, digest, splat
from ..types import BOOL, Type, Unsupported, type_of
from .table import Equation, coordinates, rule, size_of, strides_of

Terms = tuple[tuple[int, int], ...]
ONE_BY_ONE = 16  # elements: in an array this small, an update of one element is a select in each


@rule("dynamic_slice")
def _dynamic_slice(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    return [window(graph, ins[0], equation.invars[0].aval.shape, ins[1:], equation.outvars[0].aval.shape)]


def window(graph: Graph, array: Value, shape: Sequence[int], starts: Sequence[Value], sizes: Sequence[int]) -> Value:
    """The block of these sizes that starts at `starts`, clamped to the array."""
    table = np.zeros((), int)
    for n, stride in zip(sizes, strides_of(shape), strict=True):
        table = table[..., None] + np.arange(n) * stride
    table = table.reshape(-1)
    if not table.size:
        return graph.const(np.zeros(0, array.type.dtype))
    terms, args = [], []
    for k, (start, stride, full, part) in enumerate(zip(starts, strides_of(shape), shape, sizes, strict=True)):
        if array.open is not None and k == 0:
            args.append(start)
            terms.append((stride, -part))
        elif start.op == "const":
            table = table + int(np.clip(start.param[0], 0, full - part)) * stride
        elif full != part:
            args.append(start)
            terms.append((stride, full - part))
    if not args:
        return graph.view(array, table)
    return _at_run_time(graph, "window", array, args, table, tuple(terms), array.type)


@rule("dynamic_update_slice")
def _dynamic_update_slice(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    array, update = equation.invars[0].aval, equation.invars[1].aval
    return [put(graph, ins[0], array.shape, ins[1], update.shape, ins[2:])]


def put(
    graph: Graph, array: Value, shape: Sequence[int], update: Value, sizes: Sequence[int], starts: Sequence[Value]
) -> Value:
    """Write `update` over the block of the array that starts at `starts`."""
    if not update.size:
        return array
    table = np.arange(array.size).reshape(shape)[tuple(slice(0, n) for n in sizes)].reshape(-1)
    terms, args = [], []
    for k, (start, stride, full, part) in enumerate(zip(starts, strides_of(shape), shape, sizes, strict=True)):
        if array.open is not None and k == 0:
            args.append(start)
            terms.append((stride, -part))
        elif full != part:
            args.append(start)
            terms.append((stride, full - part))
    if not args:
        return update
    if array.open is None and update.size == 1 and array.size <= ONE_BY_ONE:
        return _put_in_register(graph, array, update, args, tuple(terms))
    node = graph.node("put", [array, update, *args], (table, tuple(terms)))
    return node.result(array.size, array.type, array.open)


def _put_in_register(graph: Graph, array: Value, update: Value, args: Sequence[Value], terms: Terms) -> Value:
    """Replace one element of a small array, element by element: it need not pass through memory."""
    offset: Any = None
    for a, (stride, most) in zip(args, terms, strict=True):
        low = graph.compute("max", 1, a.type, (a, splat(graph, 0, 1, a.type)))
        kept = graph.compute("min", 1, a.type, (low, splat(graph, most, 1, a.type)))
        far = graph.compute("mul", 1, a.type, (kept, splat(graph, stride, 1, a.type)))
        offset = far if offset is None else graph.compute("add", 1, a.type, (offset, far))
    size = array.size
    everywhere = np.zeros(size, int)
    own = graph.const(np.arange(size, dtype=offset.type.dtype))
    here = graph.compute("eq", size, BOOL, (own, graph.view(offset, everywhere)))
    return graph.select(here, array, graph.view(update, everywhere))


@rule("gather")
def _gather(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    p, (array, index), out = equation.params, (x.aval for x in equation.invars), equation.outvars[0].aval
    d, sizes, mode = p["dimension_numbers"], p["slice_sizes"], p["mode"]
    if ins[0].open is not None:
        raise Unsupported("a gather from an open array")
    if not size_of(out):
        return [graph.const(np.zeros(0, out.dtype))]
    strides = strides_of(array.shape)
    full = coordinates(out.shape)
    leading = [full[k] for k in range(len(out.shape)) if k not in d.offset_dims]
    window = [k for k in range(len(array.shape)) if k not in (*d.collapsed_slice_dims, *d.operand_batching_dims)]
    table = np.zeros(size_of(out), int)
    for k, along in zip(window, d.offset_dims, strict=True):
        table += full[along] * strides[k]
    for k, along in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
        table += leading[along] * strides[k]
    args, terms = _indices(
        graph, ins[1], index.shape, leading, table.size, d.start_index_map, strides, array.shape, sizes
    )
    fill = mode in (GatherScatterMode.FILL_OR_DROP, "fill")
    type = ins[0].type
    empty = p.get("fill_value")
    if empty is None:
        empty = (
            np.nan
            if type.kind == "f"
            else True
            if type.kind == "b"
            else np.iinfo(type.dtype).min
            if type.kind == "i"
            else np.iinfo(type.dtype).max
        )
    if all(a.op == "const" for a in args):
        inside = np.ones(table.size, bool)
        for a, (stride, most) in zip(args, terms, strict=True):
            inside &= (a.param >= 0) & (a.param <= most)
            table = table + np.clip(a.param.astype(int), 0, most) * stride
        there = graph.view(ins[0], table)
        if inside.all() or not fill:
            return [there]
        return [graph.select(graph.const(inside), splat(graph, empty, table.size, type), there)]
    if all(a.uniform for a in args) and not fill:
        return [_at_run_time(graph, "window", ins[0], [graph.view(a, [0]) for a in args], table, terms, type)]
    made = _at_run_time(graph, "gather", ins[0], args, table, terms, type)
    if fill:
        made = graph.select(_within(graph, args, terms), splat(graph, empty, table.size, type), made)
    return [made]


_COMBINED = {
    "scatter": "set",
    "scatter-add": "add",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
}


@rule(*_COMBINED)
def _scatter(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    p, (array, index, updates) = equation.params, (x.aval for x in equation.invars)
    d = p["dimension_numbers"]
    if not updates.size:
        return [ins[0]]
    if ins[0].open is not None:
        raise Unsupported("a scatter into an open array")
    strides = strides_of(array.shape)
    full = coordinates(updates.shape)
    leading = [full[k] for k in range(len(updates.shape)) if k not in d.update_window_dims]
    window = [k for k in range(len(array.shape)) if k not in (*d.inserted_window_dims, *d.operand_batching_dims)]
    sizes = [1] * len(array.shape)
    table = np.zeros(size_of(updates), int)
    for k, along in zip(window, d.update_window_dims, strict=True):
        table += full[along] * strides[k]
        sizes[k] = updates.shape[along]
    for k, along in zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True):
        table += leading[along] * strides[k]
    args, terms = _indices(
        graph, ins[1], index.shape, leading, table.size, d.scatter_dims_to_operand_dims, strides, array.shape, sizes
    )
    drop = p["mode"] not in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)
    combine = _COMBINED[equation.primitive.name]
    if (combine == "set" and leading == []) or (all(a.uniform for a in args) and combine == "set"):
        starts, terms = [graph.view(a, [0]) for a in args], terms
        node = graph.node("put", [ins[0], ins[2], *starts], (table, terms))
        made = node.result(ins[0].size, ins[0].type)
        if drop and not all(a.op == "const" and 0 <= a.param[0] <= m for a, (_, m) in zip(starts, terms, strict=True)):
            node.op = "put_if"
            node.args.append(_within(graph, starts, terms))
        return [made]
    node = graph.node("scatter", [ins[0], ins[2], *args], (table, terms, combine, drop))
    return [node.result(ins[0].size, ins[0].type)]


def _indices(
    graph: Graph, index: Value, shape: Sequence[int], leading: list[np.ndarray], size: int, dims: Sequence[int],
    strides: Sequence[int], full: Sequence[int], sizes: Sequence[int],
) -> tuple[list[Value], Terms]:  # fmt: skip
    """One value of indices for each indexed dimension, for every element; and their terms."""
    row = np.ravel_multi_index(leading, shape[:-1]) if leading and shape[:-1] else np.zeros(size, int)
    args = [graph.view(index, row * shape[-1] + k) for k in range(len(dims))]
    return args, tuple((strides[k], full[k] - sizes[k]) for k in dims)


def _within(graph: Graph, args: Sequence[Value], terms: Terms) -> Value:
    """Return whether indices are within their bounds."""
    inside: Any = None
    for a, (_, most) in zip(args, terms, strict=True):
        for op, bound in (("ge", 0), ("le", most)):
            if not (bound == 0 and a.type.kind == "u"):
                one = graph.compute(op, a.size, type_of(np.dtype(bool)), (a, splat(graph, bound, a.size, a.type)))
                inside = one if inside is None else graph.compute("and", a.size, one.type, (inside, one))
    return inside


def _at_run_time(
    graph: Graph, op: str, array: Value, args: Sequence[Value], table: np.ndarray, terms: Terms, type: Type
) -> Value:
    key = (digest(table), terms)
    return graph.compute(op, table.size, type, (graph.whole(array), *args), (table, terms), key)
