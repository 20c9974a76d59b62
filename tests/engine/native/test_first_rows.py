"""What a mask of the first rows hides is not computed, and nobody sees it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.native.first_rows import AT_A_TIME
from carom.engine.native.graph import Graph, Node
from carom.engine.native.liveness import prune
from carom.engine.native.rules import translate
from carom.engine.native.rules.table import size_of
from carom.engine.native.types import type_of
from carom.tests.oracles.native_and_xla import Native, assert_close, assert_same_bits, xla

N = 5 * AT_A_TIME + 7
COUNTS = (0, 1, AT_A_TIME - 1, AT_A_TIME, AT_A_TIME + 1, N - 1, N, N + 3)


def first(count, rows=N):
    return jnp.arange(rows, dtype=jnp.int32) < count


def chain(count, x, y):
    """Three operations on x, of which a sum sees the first rows."""
    return jnp.where(first(count), jnp.sqrt(jnp.abs(x)) * y + 1, 0).sum()


def by_index(count, x, which):
    """Rows that are picked, with indices that are themselves masked."""
    picked = x[jnp.where(first(count), which % N, 0)] * 2
    return jnp.where(first(count), picked, 0)


def nested(count, x, y):
    """A mask within a mask; what is seen is the smaller one's."""
    there = first(count) & (x > 0)
    inner = jnp.where(there, jnp.sin(x) / y, 1)
    return jnp.where(there & first(count // 2), inner * y, 0), there.sum()


def wide(count, x, y):
    """Rows of three elements, and a mask that is repeated along them."""
    rows = jnp.stack([x, y, x * y], 1)
    return jnp.where(first(count)[:, None], jnp.exp(-jnp.abs(rows)) + rows, 0)


def two_readers(count, x, y):
    """One sees the first rows, the other half of these."""
    z = jnp.tanh(x) + y * y
    return jnp.where(first(count), z, 0).max(), jnp.where(first(count // 2), z, 0)


def in_a_loop(count, x, y):
    """Ends at a count that the loop changes."""

    def body(carry):
        k, total = carry
        return k + 1, total + jnp.where(first(count // (k + 1)), jnp.cos(x * k) * y, 0).sum()

    return jax.lax.while_loop(lambda carry: carry[0] < 3, body, (jnp.int32(0), jnp.zeros((), x.dtype)))


def late(count, x, y):
    """The count is known only after what it limits."""
    z = jnp.tanh(x) + y * y
    rows = jnp.sqrt((y > 0).sum().astype(x.dtype) ** 2 + 1).astype(jnp.int32) // 2 + count
    return jnp.where(first(rows), z, 0)


PROGRAMS = [chain, by_index, nested, wide, two_readers, in_a_loop, late]


def numbers(program, dtype):
    rng = np.random.default_rng(PROGRAMS.index(program))
    x, y = rng.normal(size=(2, N)).astype(dtype)
    return (x, rng.integers(0, 10 * N, N).astype(np.int32)) if program is by_index else (x, y + np.sign(y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_masked_rows_are_those_of_xla(program, dtype):
    """For counts around the ends of stretches; and dead and unwritten memory, filled with NaN, is not seen."""
    native, given = Native(program), numbers(program, dtype)
    checked = Native(program, checked=True)
    for count in map(jnp.int32, COUNTS):
        mine = native(count, *given)
        for a, b in zip(mine, xla(program, count, *given), strict=True):
            assert_close(a, b, 1e-5 if dtype == np.float32 else 1e-12, f"{program.__name__} of {count} rows")
        assert_same_bits(native(count, *given, poison=True), mine, "poisoned")
        assert_same_bits(checked(count, *given), mine, "checked")


@pytest.mark.parametrize(
    ("program", "hidden"),
    [(chain, 4), (by_index, 3), (nested, 3), (wide, 3), (two_readers, 3), (in_a_loop, 3), (late, 3)],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_masked_rows_are_not_computed(program, hidden):
    """At least so many operations of a program end at a count."""
    jaxpr = jax.make_jaxpr(program)(jnp.int32(3), *numbers(program, np.float64))
    graph = Graph()
    for var in jaxpr.jaxpr.invars:
        graph.top.input(size_of(var.aval), type_of(var.aval.dtype))
    consts = [graph.const(np.asarray(c)) for c in jaxpr.consts]
    graph.top.results = translate(graph, jaxpr.jaxpr, consts, list(graph.top.inputs))
    prune(graph.top)

    def limited(region):
        for item in region.items:
            if isinstance(item, Node):
                for inner in item.regions:
                    yield from limited(inner)
            elif item.limit:
                yield item

    assert len(list(limited(graph.top))) >= hidden


def test_rows_that_others_see_are_computed():
    """A value that is also seen whole has no limit, nor has one that is read at other indices."""

    def program(count, x, which):
        y = x * 3
        return jnp.where(first(count), y, 0), y.sum(), jnp.where(first(count), (x + 1)[which % N], 0)

    given = numbers(by_index, np.float64)
    native = Native(program)
    for count in map(jnp.int32, COUNTS):
        for a, b in zip(native(count, *given, poison=True), xla(program, count, *given), strict=True):
            assert_close(a, b, 1e-12, f"{count} rows")
