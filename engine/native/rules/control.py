"""Loops and branches.

Every loop is one node, "loop": its `before` computes its constants, its test decides whether to continue, its body
computes the next carry. A scan is a loop with a counter, which reads a row of each input and writes a row of each
output in every iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np

from ..graph import Graph, Node, Region, Value, splat
from ..types import BOOL, I32, Unsupported, type_of
from .indexing import put, window
from .table import Equation, rule, size_of, translate_closed

Body = Callable[[Sequence[Value]], Sequence[Value]]


def loop(graph: Graph, start: Sequence[Value], test: Body, body: Body, iterations: int | None = None) -> list[Value]:
    """Emit a loop; return the carry when `test` (one bool) is false.  iterations: their number, if it is known."""
    node = Node("loop", start, iterations, graph.region)
    outer = graph.region
    before = Region(outer, node, outer.before)
    before.outermost = outer.outermost or before
    node.regions.append(before)
    for code, home in ((test, outer), (body, before)):  # the test runs at least once, the body perhaps not

        def build(region: Region, code: Body = code) -> None:
            carry = [region.input(x.size, x.type, x.open) for x in start]
            region.results = list(code(carry))

        graph.inside(node, home, build)
    outer.items.append(node)
    if any(x.open != y.open for x, y in zip(start, node.regions[2].results, strict=True)):
        raise Unsupported("a loop that takes one open array for another")
    return [node.result(x.size, x.type, x.open) for x in start]


@rule("while")
def _while(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    p = equation.params
    n, m = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    if p["cond_jaxpr"].out_avals[0].shape:
        return _side_by_side(graph, equation, ins)
    return loop(
        graph, ins[m:],
        lambda carry: translate_closed(graph, p["cond_jaxpr"], [*ins[:n], *carry]),
        lambda carry: translate_closed(graph, p["body_jaxpr"], [*ins[n:m], *carry]),
    )  # fmt: skip


def _side_by_side(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    """Translate loops under `vmap`, whose test has one value per loop: they continue while any does; the others
    keep their carry."""
    p, avals = equation.params, [x.aval for x in equation.invars]
    n, m = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    goes_on, advance = (jax.extend.core.jaxpr_as_fun(p[name]) for name in ("cond_jaxpr", "body_jaxpr"))

    def body(*given: jax.Array) -> list[jax.Array]:
        on, old = goes_on(*given[:n], *given[m:])[0], given[m:]
        return [
            jnp.where(on.reshape(*on.shape, *(1,) * (x.ndim - on.ndim)), x, y)
            for x, y in zip(advance(*given[n:]), old, strict=True)
        ]

    test = jax.make_jaxpr(lambda *given: goes_on(*given)[0].any())(*avals[:n], *avals[m:])
    made = jax.make_jaxpr(body)(*avals)
    return loop(
        graph, ins[m:],
        lambda carry: translate_closed(graph, test, [*ins[:n], *carry]),
        lambda carry: translate_closed(graph, made, [*ins[:m], *carry]),
    )  # fmt: skip


@rule("scan")
def _scan(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    p = equation.params
    (n, carry_count), length = _of_scan(p), p["length"]
    m = n + carry_count
    outs = [x.aval for x in equation.outvars[carry_count:]]
    none = graph.const(np.zeros((), np.int32))
    if length == 0:
        return [*ins[n:m], *(graph.const(np.zeros(0, x.dtype)) for x in outs)]

    def test(carry: Sequence[Value]) -> Sequence[Value]:
        return [graph.compute("lt", 1, BOOL, (carry[0], splat(graph, length, 1, I32)))]

    def body(carry: Sequence[Value]) -> Sequence[Value]:
        next_index = graph.compute("add", 1, I32, (carry[0], splat(graph, 1, 1, I32)))
        row = graph.compute("sub", 1, I32, (splat(graph, length - 1, 1, I32), carry[0])) if p["reverse"] else carry[0]
        rows = []
        for x, var in zip(ins[m:], equation.invars[m:], strict=True):
            shape = var.aval.shape
            rows.append(window(graph, x, shape, [row, *[none] * (len(shape) - 1)], (1, *shape[1:])))
        made = translate_closed(graph, p["jaxpr"], [*ins[:n], *carry[1 : 1 + m - n], *rows])
        written = []
        for old, new, aval in zip(carry[1 + m - n :], made[m - n :], outs, strict=True):
            starts = [row, *[none] * (len(aval.shape) - 1)]
            written.append(put(graph, old, aval.shape, new, (1, *aval.shape[1:]), starts))
        return [next_index, *made[: m - n], *written]

    # arrays that are written row by row need no initial values
    empty = [graph.node("empty", ()).result(size_of(x), type_of(x.dtype)) for x in outs]
    return loop(graph, [none, *ins[n:m], *empty], test, body, length)[1:]


def _of_scan(params: dict[str, Any]) -> tuple[int, int]:
    """Number of a scan's operands that are constants, and of its carries; in jax 0.11 they are trees."""
    if "ft_in" not in params:
        return params["num_consts"], params["num_carry"]
    constants, carry, _ = params["ft_in"].unpack()
    return len(constants), len(carry)


@rule("cond")
def _cond(graph: Graph, equation: Equation, ins: list[Value]) -> Sequence[Value]:
    branches = equation.params["branches"]
    if ins[0].op == "const":
        which = int(np.clip(ins[0].param[0], 0, len(branches) - 1))
        return translate_closed(graph, branches[which], ins[1:])
    node = Node("cond", [ins[0]], None, graph.region)
    outer = graph.region
    for branch in branches:

        def build(region: Region, branch: jax.extend.core.ClosedJaxpr = branch) -> None:
            region.results = translate_closed(graph, branch, ins[1:])

        graph.inside(node, None, build)
    outer.items.append(node)
    made = []
    for k, var in enumerate(equation.outvars):
        opens = {region.results[k].open for region in node.regions}
        if len(opens) > 1:
            raise Unsupported("branches that end with different open arrays")
        made.append(node.result(size_of(var.aval), type_of(var.aval.dtype), opens.pop()))
    return made
