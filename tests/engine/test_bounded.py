"""Loops with an end that is not known: their derivatives are those of what they do, in both modes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.algebra.bounded import differentiated_once, iterate, loop

X = jnp.array([0.3, 2.0, 7.0])


def powers(x: jax.Array, most: int) -> jax.Array:
    """x * 2 as often as it stays below 10: 2^n x, with n of each number its own."""

    def turn(given: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        k, y = carry
        return k + 1, jnp.where(y * given < 10, y * given, y)

    busy = lambda given, carry: (carry[1] * given < 10).any()  # noqa: E731
    return loop(most, busy, turn, jnp.asarray(2.0), (jnp.int32(0), x))[1]


@pytest.mark.parametrize("most", [6, 9, 100])
def test_both_modes(most: int) -> None:
    np.testing.assert_array_equal(powers(X, most), X * 2.0 ** np.array([5, 2, 0]))
    for mode in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(mode(lambda x: powers(x, most))(X), np.diag([32, 4, 1]), rtol=1e-15)


@pytest.mark.parametrize("most", [1, 2, 5, 16, 17])
def test_as_many_turns_as_asked(most: int) -> None:
    assert int(iterate(lambda k: k < 10, lambda k: k + 1, jnp.int32(0), most)) == min(most, 10)


# -- what has a first derivative only ---------------------------------------------------------------


@jax.custom_jvp
def rounded(x: jax.Array) -> jax.Array:
    return jnp.round(x)


@rounded.defjvp
def _slope(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    (x,) = differentiated_once(primals)
    return jnp.round(x), x * tangents[0]


def stepped(x: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, 2, lambda _, y: y + rounded(x), x)


@pytest.mark.parametrize("how", [lambda f: f, jax.jit, jax.checkpoint], ids=["plain", "jit", "checkpoint"])
def test_a_rule_without_a_derivative_of_its_own_says_so(how) -> None:
    """Once it may be differentiated, in both modes; the second time is an error, in whatever order."""
    f = how(stepped)
    for mode in (jax.jacfwd, jax.jacrev):
        assert mode(f)(2.5) == 6.0  # 1 + 2 x
        for again in (jax.jacfwd, jax.jacrev):
            with pytest.raises(TypeError, match="have first derivatives only"):
                again(mode(f))(2.5)
