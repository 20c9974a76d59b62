"""Elementary functions, inlined as `engine/algebra` defines them, in vectors, with the same bits on every machine."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ...algebra.elementary import FUNCTIONS
from ..graph import Graph, Value
from ..types import F32, F64, Unsupported, type_of
from .elementwise import apply_primitive, spread
from .table import Equation, rule, size_of


@rule(*FUNCTIONS)
def _elementary(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    name, out = equation.primitive.name, equation.outvars[0].aval
    if type_of(out.dtype) not in (F64, F32):
        raise Unsupported(f"{name} of {out.dtype}")
    size = size_of(out)
    if size == 0:
        return [graph.const(np.zeros(0, out.dtype))]
    jaxpr = _scalar_jaxpr(name, tuple(np.dtype(x.aval.dtype) for x in equation.invars))
    known = dict(zip(jaxpr.invars, spread(graph, equation, ins), strict=True))
    for step in jaxpr.eqns:
        args = [graph.const(np.full(size, x.val, x.aval.dtype)) if hasattr(x, "val") else known[x] for x in step.invars]
        (made,) = step.outvars
        known[made] = apply_primitive(graph, step.primitive.name, step.params, made.aval.dtype, size, args)
    return [known[jaxpr.outvars[0]]]


@functools.cache
def _scalar_jaxpr(name: str, dtypes: tuple[np.dtype, ...]) -> Any:
    """The jaxpr of the function of one number; each of its equations is then applied to all elements."""
    closed_jaxpr = jax.make_jaxpr(FUNCTIONS[name])(*(jax.ShapeDtypeStruct((), t) for t in dtypes))
    assert not closed_jaxpr.consts
    return closed_jaxpr.jaxpr
