"""Guarded quotients and roots against numpy, and their derivatives where the plain ones have none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.algebra.safe import safe_div, safe_sqrt

X = np.array([-2.0, 0.0, 3.0, 5.0])


def test_quotients_are_numpys_where_they_are_asked_for():
    y = np.array([4.0, 0.0, -7.0, 2.0])
    np.testing.assert_array_equal(safe_div(X, y), np.divide(X, y, out=np.zeros(4), where=y > 0))
    np.testing.assert_array_equal(safe_div(X, y, y != 0, X), np.divide(X, y, out=X.copy(), where=y != 0))


def test_roots_are_numpys_of_positive_numbers():
    np.testing.assert_array_equal(safe_sqrt(X), np.sqrt(X, out=np.zeros(4), where=X > 0))
    np.testing.assert_array_equal(safe_sqrt(X, X > 4, 1), np.sqrt(X, out=np.ones(4), where=X > 4))
    assert np.isnan(safe_sqrt(np.nan))


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_derivatives_are_finite_where_there_is_nothing_to_divide_by(mode):
    assert mode(lambda y: safe_div(3.0, y))(0.0) == 0
    assert mode(lambda y: safe_div(3.0, y))(2.0) == -0.75
    assert mode(safe_sqrt)(0.0) == 0
    assert mode(safe_sqrt)(4.0) == 0.25
    assert np.isnan(jax.grad(lambda y: jnp.where(y > 0, 3.0 / y, 0))(0.0))  # what it is for
