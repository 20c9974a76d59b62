"""Values that are differentiated forward only."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.forward_only import forward_only


def cube(x: jax.Array) -> jax.Array:
    return forward_only({"cube": x**3}, "no way back: go forward")["cube"]


def test_values_and_forward_derivatives_are_the_same() -> None:
    x = jnp.arange(1.0, 4.0)
    np.testing.assert_array_equal(jax.jit(jax.vmap(cube))(x), x**3)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(cube))(x), jnp.diag(3 * x**2), rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(jax.jacfwd(cube))(x), 3 * x**2, rtol=1e-12)


def test_reverse_mode_is_refused_where_it_would_go_through() -> None:
    with pytest.raises(ValueError, match="no way back: go forward"):
        jax.grad(cube)(2.0)
    with pytest.raises(ValueError, match="no way back: go forward"):
        jax.make_jaxpr(jax.jit(jax.grad(lambda x: cube(x) + x)))(2.0)
    slope, beside = jax.grad(lambda x: (x * x, cube(x)), has_aux=True)(2.0)  # nothing goes back through what is beside
    assert (slope, beside) == (4.0, 8.0)
