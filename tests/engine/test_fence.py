"""What `@fence` is for: work that grows linearly with the length of a chain, and unchanged values.

XLA's duplicated subexpressions stand in the text of the compiled program, one line an operation, so its
lines count both the compiler's work and the machine's; seconds would depend on the day.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.algebra.fence import fence
from carom.scenes.library.registry import library_scene

LANES = 256


def compiled_aba(n):
    model, _ = carom.compile_scene(library_scene("chain", n=n, alternate=True))
    numbers = jnp.zeros((LANES, n))
    return jax.jit(carom.aba).lower(model, numbers, numbers, numbers).compile().as_text() or ""


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="fences act on the CPU only")
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
