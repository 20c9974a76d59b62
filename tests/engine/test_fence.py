"""What `@fence` is for: work that grows linearly with the length of a chain, and unchanged values; and `compute_once`.

XLA's duplicated subexpressions stand in the text of the compiled program, one line an operation, so its
lines count both the compiler's work and the machine's; seconds would depend on the day.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.algebra.fence import compute_once, fence
from carom.scenes.library.registry import library_scene

LANES = 256


def compiled_aba(n):
    model, _ = carom.compile_scene(library_scene("chain", n=n, alternate=True))
    numbers = jnp.zeros((LANES, n))
    return jax.jit(carom.aba).lower(model, numbers, numbers, numbers).compile().as_text() or ""


CPU_ONLY = pytest.mark.skipif(jax.default_backend() != "cpu", reason="fences act on the CPU only")


def calls(function, *arguments):
    """The compiled program's calls that were not inlined, and all its text."""
    text = jax.jit(function).lower(*arguments).compile().as_text() or ""
    return text.count(" call("), text


@CPU_ONLY
@pytest.mark.slow
def test_work_grows_linearly_from_four_links_to_twelve():
    four, twelve = compiled_aba(4), compiled_aba(12)
    calls = [text.count(" call(") for text in (four, twelve)]
    assert calls[0] > 0, "no fence survived to the compiled program"
    assert calls[1] == pytest.approx(3 * calls[0], rel=0.15)
    operations = [text.count(" = ") for text in (four, twelve)]
    assert operations[1] < 3.5 * operations[0]  # linear is 3; unfenced, each link past four costs a factor of 20


def test_fence_changes_no_value_and_survives_transformations():
    def f(x, y):
        return {"s": jnp.sin(x) * y, "d": x - y}

    g = fence(f)
    x, y = jnp.linspace(0.0, 1.0, 5), jnp.linspace(1.0, 2.0, 5)
    for transform in (lambda h: h, jax.jit, jax.vmap):
        for a, b in zip(jax.tree.leaves(transform(f)(x, y)), jax.tree.leaves(transform(g)(x, y)), strict=True):
            np.testing.assert_array_equal(a, b)
    one = jnp.ones_like(x)
    plain, fenced = (jax.tree.leaves(jax.jvp(h, (x, y), (one, y))) for h in (f, g))
    for a, b in zip(plain, fenced, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)
    np.testing.assert_allclose(
        jax.grad(lambda x: g(x, y)["s"].sum())(x), jax.grad(lambda x: f(x, y)["s"].sum())(x), rtol=1e-15
    )


@CPU_ONLY
def test_where_does_not_cut_a_stage_in_two():
    """`jnp.where`, `clip` and the like are calls of their own; inside a fence they must not become fences too."""

    def stage(x, y):
        for _ in range(3):
            x = jnp.where(x > y, jnp.sin(x), jnp.clip(x * y, 0.0, 1.0))
        return x

    x = jnp.linspace(0.0, 1.0, LANES)
    count, text = calls(fence(stage), x, x + 0.5)
    assert count == 1
    assert text.count(" fusion(") == 1


@CPU_ONLY
def test_a_fence_stands_within_another():
    inner = fence(lambda x: jnp.sin(x))
    count, _ = calls(fence(lambda x: inner(x) * jnp.where(x > 0, x, 1.0)), jnp.ones(LANES))
    assert count == 2


def test_settled_changes_no_value_and_no_derivative():
    tree = {"a": jnp.linspace(-1.0, 1.0, 5), "b": (jnp.arange(5), None)}
    for transform in (lambda h: h, jax.jit, jax.vmap):
        got = transform(compute_once)(tree)
        assert jax.tree.structure(got) == jax.tree.structure(tree)
        for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(tree), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)
    x = tree["a"]
    np.testing.assert_array_equal(jax.grad(lambda x: compute_once(x * x).sum())(x), 2 * x)
    np.testing.assert_array_equal(jax.jvp(compute_once, (x,), (x,))[1], x)


@CPU_ONLY
def test_settled_numbers_are_computed_once():
    """Two readers of one sum of products, of which fusion would give each a copy."""

    def products(hold):
        def f(x, y):
            c = hold(x * y + y * y)
            return jnp.roll(c, 1), jnp.where(c > 0, x, y)

        return calls(f, x, x)[1].count(" multiply(")

    x = jnp.linspace(-1.0, 1.0, LANES)
    assert products(lambda c: c) > 2, "fusion makes no copies here: the test shows nothing"
    assert products(compute_once) == 2
