"""Shapes: operations that only move elements are views, and those that concatenate arrays are a `join`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph import Graph, Value, digest
from ..types import F32, F64, Unsupported, type_of
from .table import Equation, element_indices, rule, size_of

BUILT = 16  # up to this many elements are put together in a register


@rule(
    "reshape",
    "squeeze",
    "expand_dims",
    "stop_gradient",
    "copy",
    "copy_p",
    "device_put",
    "optimization_barrier",
    "forward_only",
)
def _same(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    return ins


@rule("reduce_precision")
def _reduce_precision(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    x, bits = ins[0], (equation.params["exponent_bits"], equation.params["mantissa_bits"])
    own = np.finfo(x.type.dtype)
    if bits[0] >= own.iexp and bits[1] >= own.nmant:
        return ins
    if x.type is not F64 or bits != (8, 23):
        raise Unsupported(f"reduce_precision of {x.type.name} to {bits} bits")
    rounded = graph.compute("convert_element_type", x.size, F32, (x,))
    return [graph.compute("convert_element_type", x.size, F64, (rounded,))]


@rule("broadcast_in_dim")
def _broadcast(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    out, aval = equation.outvars[0].aval, equation.invars[0].aval
    shape = [1] * len(out.shape)
    for d, n in zip(equation.params["broadcast_dimensions"], aval.shape, strict=True):
        shape[d] = n
    return [graph.view(ins[0], np.broadcast_to(element_indices(aval).reshape(shape), out.shape))]


@rule("slice")
def _slice(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    p, aval = equation.params, equation.invars[0].aval
    steps = p["strides"] or (1,) * len(aval.shape)
    cut = tuple(slice(*x) for x in zip(p["start_indices"], p["limit_indices"], steps, strict=True))
    return [graph.view(ins[0], element_indices(aval)[cut])]


@rule("transpose")
def _transpose(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    return [graph.view(ins[0], element_indices(equation.invars[0].aval).transpose(equation.params["permutation"]))]


@rule("rev")
def _reverse(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    return [graph.view(ins[0], np.flip(element_indices(equation.invars[0].aval), equation.params["dimensions"]))]


@rule("iota")
def _iota(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    out, d = equation.outvars[0].aval, equation.params["dimension"]
    along = np.arange(out.shape[d]).reshape([-1 if k == d else 1 for k in range(len(out.shape))])
    return [graph.const(np.broadcast_to(along, out.shape).astype(out.dtype))]


@rule("empty")
def _empty(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    """An array that is not read before it is written."""
    out = equation.outvars[0].aval
    return [graph.node("empty", ()).result(size_of(out), type_of(out.dtype))]


@rule("empty2")
def _zero(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    """An array of jax's scans that starts as 0 everywhere."""
    out = equation.outvars[0].aval
    return [graph.const(np.zeros(out.shape, out.dtype))]


@rule("split")
def _split(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    cuts = np.cumsum(equation.params["sizes"])[:-1]
    return [
        graph.view(ins[0], x) for x in np.split(element_indices(equation.invars[0].aval), cuts, equation.params["axis"])
    ]


@rule("unstack")
def _unstack(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    return [
        graph.view(ins[0], x) for x in np.moveaxis(element_indices(equation.invars[0].aval), equation.params["axis"], 0)
    ]


@rule("tile")
def _tile(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    return [graph.view(ins[0], np.tile(element_indices(equation.invars[0].aval), equation.params["reps"]))]


@rule("concatenate", "stack")
def _concatenate(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    stack = equation.primitive.name == "stack"
    axis = equation.params["axis" if stack else "dimension"]
    arrays = [
        np.expand_dims(element_indices(x.aval), axis) if stack else element_indices(x.aval) for x in equation.invars
    ]
    pieces = np.concatenate([np.full(x.shape, k) for k, x in enumerate(arrays)], axis)
    return [join(graph, ins, pieces, np.concatenate(arrays, axis))]


@rule("pad")
def _pad(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    out, config = equation.outvars[0].aval, equation.params["padding_config"]
    at, pieces, here = element_indices(equation.invars[0].aval), np.ones(out.shape, int), np.zeros(out.shape, int)
    target, source = [], []
    for n, m, (low, _, inner) in zip(at.shape, out.shape, config, strict=True):
        where = low + np.arange(n) * (inner + 1)
        kept = (where >= 0) & (where < m)
        target.append(where[kept])
        source.append(np.arange(n)[kept])
    pieces[np.ix_(*target)] = 0
    here[np.ix_(*target)] = at[np.ix_(*source)]
    return [join(graph, ins, pieces, here)]


def join(graph: Graph, ins: Sequence[Value], pieces: np.ndarray, at: np.ndarray) -> Value:
    """Join arrays: element k is element at[k] of ins[pieces[k]]."""
    pieces, at, type = pieces.reshape(-1), at.reshape(-1), ins[0].type
    used = [k for k in range(len(ins)) if (pieces == k).any()]
    if not used:
        return graph.const(np.zeros(0, type.dtype))
    if all(ins[k].op == "const" for k in used):
        data = np.zeros(len(pieces), type.dtype)
        for k in used:
            data[pieces == k] = ins[k].param[at[pieces == k]]
        return graph.const(data)
    if len({ins[k].base for k in used}) == 1:  # one array's elements in another order
        index = np.zeros(len(pieces), int)
        for k in used:
            mine = pieces == k
            index[mine] = ins[k].param[at[mine]] if ins[k].op == "view" else at[mine]
        return graph.view(ins[used[0]].base, index)
    if len(pieces) <= BUILT:
        return graph.compute(
            "build", len(pieces), type, [graph.view(ins[k], [j]) for k, j in zip(pieces, at, strict=True)]
        )
    targets = [np.flatnonzero(pieces == k) for k in used]
    args = [graph.view(ins[k], at[mine]) for k, mine in zip(used, targets, strict=True)]
    piece, index = np.zeros(len(pieces), int), np.zeros(len(pieces), int)
    for k, mine in enumerate(targets):
        piece[mine], index[mine] = k, np.arange(len(mine))
    key = tuple(map(digest, targets))
    return graph.single_result("join", args, (piece, index, targets), key, len(pieces), type)
