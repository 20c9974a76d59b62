"""Derivatives of native programs in reverse mode, whatever jax does around them: they are those of the function."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.native.function import native
from carom.tests.oracles.native_and_xla import no_fallback


def of_arrays(x: Any, scale: Any) -> Any:
    return jnp.sin(x) * x * scale, x.sum(), jnp.int32(3)


@native
def program(_: None, x: Any, scale: Any) -> Any:
    return of_arrays(x, scale)


def plain(_: None, x: Any, scale: Any) -> Any:
    return of_arrays(x, scale)


def total(f: Any, x: Any) -> Any:
    y, s, _ = f(None, x, 0.9)
    return (y * y).sum() + s


def repeated(f: Any, x: Any, wrap: Any = lambda body: body) -> Any:
    def body(x: Any, _: None) -> Any:
        y, s, _ = f(None, x, jnp.float64(0.9))
        return y + 0.1 * s, s

    end, sums = jax.lax.scan(wrap(body), x, None, length=4)
    return end.sum() + sums.sum()


def by_scale(f: Any, x: Any) -> Any:
    """Lanes that share the scale."""
    return lambda scale: jax.vmap(lambda y: f(None, y, scale)[0])(jnp.stack([x, 2 * x, 3 * x])).sum()


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "gradient": lambda f, x: jax.grad(lambda x: total(f, x))(x),
    "compiled": lambda f, x: jax.jit(jax.grad(lambda x: total(f, x)))(x),
    "in a scan": lambda f, x: jax.grad(lambda x: repeated(f, x))(x),
    "in a checkpointed scan": lambda f, x: jax.grad(lambda x: repeated(f, x, jax.checkpoint))(x),
    "checkpointed": lambda f, x: jax.grad(jax.checkpoint(lambda x: total(f, jnp.cos(x))))(f(None, x, 1.0)[0]),
    "in a branch": lambda f, x: jax.grad(lambda x: jax.lax.cond(x[0] > 0, lambda x: total(f, x), jnp.sum, x))(x),
    "of lanes": lambda f, x: jax.vmap(jax.grad(lambda x: total(f, x)))(jnp.stack([x, 2 * x])),
    "through lanes": lambda f, x: jax.grad(lambda x: jax.vmap(lambda y: total(f, y))(jnp.stack([x, 2 * x])).sum())(x),
    "of what lanes share": lambda f, x: jax.grad(by_scale(f, x))(0.7),
    "linearized": lambda f, x: jax.vmap(jax.linearize(lambda x: f(None, x, 1.0)[0], x)[1])(jnp.eye(3)),
    "forward of reverse": lambda f, x: jax.hessian(lambda x: repeated(f, x))(x),
    "reverse of reverse": lambda f, x: jax.jacrev(jax.jacrev(lambda x: total(f, x)))(x),
    "forward of a checkpoint": lambda f, x: jax.hessian(jax.checkpoint(lambda x: total(f, x)))(x),
    "rows": lambda f, x: jax.jacrev(lambda x: f(None, x, 1.0)[0])(x),
}


@pytest.mark.parametrize("case", CASES)
def test_reverse_mode_is_that_of_the_function(case: str) -> None:
    x = jnp.arange(1.0, 4.0)
    with no_fallback():
        mine = CASES[case](program, x)
    np.testing.assert_allclose(mine, CASES[case](plain, x), rtol=1e-12, atol=1e-12)
