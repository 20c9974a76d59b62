"""Where a value is computed: as seldom as the program needs it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.native.function import native
from carom.engine.native.graph import Graph
from carom.engine.native.liveness import prune
from carom.engine.native.rules import translate
from carom.engine.native.rules.table import size_of
from carom.engine.native.types import type_of

N = 100


def regions_of(function, op, *args):
    """What the regions are of all live values and nodes of this kind: the operations of their owners, outer first."""
    closed = jax.make_jaxpr(function)(*args)
    graph = Graph()
    for var in closed.jaxpr.invars:
        graph.top.input(size_of(var.aval), type_of(var.aval.dtype))
    consts = [graph.const(np.asarray(c)) for c in closed.consts]
    graph.top.results = translate(graph, closed.jaxpr, consts, list(graph.top.inputs))
    found = []
    for region in prune(graph.top):
        for item in region.items:
            if item.op == op:
                chain, at = [], region
                while at.owner is not None:
                    chain.append("before" if at.owner.op == "loop" and at is at.owner.regions[0] else at.owner.op)
                    at = at.owner.region
                found.append(tuple(chain[::-1]))
    return found


def seldom(x, y, yes):
    """y's root is a branch's alone."""
    root = jnp.sqrt(y)
    return jax.lax.cond(yes, lambda: x + root.sum(), lambda: x)


def often(x, y, yes):
    root = jnp.sqrt(y)
    return jax.lax.cond(yes, lambda: x + root.sum(), lambda: x) + root[0]


def in_turns(x, y, yes):
    """Of every turn, but only in a branch: y does not change."""

    def turn(k, x):
        return jax.lax.cond(x > k, lambda: x + jnp.sqrt(y).sum(), lambda: x - 1)

    return jax.lax.fori_loop(0, 5, turn, x)


def within(x, y, yes):
    """A loop within a branch of a loop, whose turns need what the outer one changes."""

    def inner(k, x):
        return x * 0.5 + jnp.sqrt(y[0] + k)

    def turn(k, x):
        return jax.lax.cond(yes, lambda: jax.lax.fori_loop(0, 3, inner, x), lambda: x)

    return jax.lax.fori_loop(0, 5, turn, x)


ARGS = 1.0, np.linspace(1, 2, N), np.asarray(True)


@pytest.mark.parametrize(
    ("function", "where"),
    [(seldom, ("cond",)), (often, ()), (in_turns, ("before",)), (within, ("loop", "cond", "loop"))],
)
def test_where_a_root_is_computed(function, where):
    assert regions_of(function, "sqrt", *ARGS) == [where]


def test_sums_go_with_what_they_add_up():
    assert regions_of(seldom, "fold", *ARGS) == [("cond",)]
    assert regions_of(in_turns, "fold", *ARGS) == [("before",)]


@pytest.mark.parametrize("function", [seldom, often, in_turns, within])
@pytest.mark.parametrize("yes", [True, False])
def test_it_is_the_same_number(function, yes):
    args = 1.0, jnp.linspace(1, 2, N), jnp.asarray(yes)
    mine = native(lambda _, *args: function(*args))
    assert float(mine((), jnp.asarray(1.0), *args[1:])) == pytest.approx(float(jax.jit(function)(*args)), rel=1e-14)
