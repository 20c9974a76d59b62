"""Calls are inlined: a lane's program is one piece."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph import Graph, Value
from .table import Equation, rule, translate, translate_closed

_BODIES = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat2": "jaxpr",
    "checkpoint": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
}  # fmt: skip


@rule(*_BODIES)
def _call(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    body = equation.params[_BODIES[equation.primitive.name]]
    closed = hasattr(body, "consts")
    return graph.call(
        body, ins, lambda: translate_closed(graph, body, ins) if closed else translate(graph, body, (), ins)
    )


@rule("native")
def _native(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    """Inline a native program within a program: jax caches traces, and may have traced it outside of any program."""
    avals = [x.aval for x in equation.invars]
    return translate_closed(graph, equation.params["program"].within(equation.params["batched"], avals), ins)


@rule("custom_linear_solve")
def _solve(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    """Inline the solution of linear equations; the other functions of the primitive are for derivatives of it."""
    lengths, bodies = equation.params["const_lengths"], equation.params["jaxprs"]
    first = lengths.matvec + lengths.vecmat
    return translate_closed(graph, bodies.solve, [*ins[first : first + lengths.solve], *ins[sum(lengths) :]])
