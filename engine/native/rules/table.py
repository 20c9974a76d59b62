"""The table of rules: each of jax's primitives as values of the graph.

A rule takes the graph, the equation and the values it reads, and returns those it makes. A family of rules is a file
beside this one. The compiler does not translate primitives that are not in the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex
from jax.typing import ArrayLike

from ..graph import Graph, Value
from ..types import Shaped, Unsupported

Equation = Any  # a JaxprEqn of arrays: jax's own class does not say that its avals are ShapedArrays
Rule = Callable[[Graph, Equation, list[Value]], Sequence[Value]]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def translate(graph: Graph, jaxpr: jex.Jaxpr, consts: Sequence[Value], args: Sequence[Value]) -> list[Value]:
    """Add the equations of a jaxpr to the graph; return its results."""
    known: dict[jex.Var, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
    known.update(zip(jaxpr.invars, args, strict=True))

    def read(x: jex.Var | jex.Literal) -> Value:
        if not isinstance(x, jex.Literal):
            return known[x]
        aval: Any = x.aval
        return graph.const(_array(x.val, aval))

    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name not in RULES:
            raise Unsupported(f"the primitive {name}")
        made = RULES[name](graph, equation, [read(x) for x in equation.invars])
        known.update(zip(equation.outvars, made, strict=True))
    return [read(x) for x in jaxpr.outvars]


def translate_closed(graph: Graph, closed_jaxpr: jex.ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
    return translate(graph, closed_jaxpr.jaxpr, [graph.const(_array(c, c)) for c in closed_jaxpr.consts], args)


def _array(x: ArrayLike, aval: Shaped) -> np.ndarray:
    """Return a constant as an array. Tangents of integers, which have no bytes and no readers, are False."""
    return np.zeros(aval.shape, bool) if aval.dtype == jax.dtypes.float0 else np.asarray(x, aval.dtype)


def size_of(aval: Shaped) -> int:
    return math.prod(aval.shape)


def element_indices(aval: Shaped) -> np.ndarray:
    """The index of each element, in the array's shape: numpy's operations on it define a view."""
    return np.arange(size_of(aval)).reshape(aval.shape)


def strides_of(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def coordinates(shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Coordinates of every element along each axis, in order."""
    return np.unravel_index(np.arange(math.prod(shape)), tuple(shape)) if shape else ()
