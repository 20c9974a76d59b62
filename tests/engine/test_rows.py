"""Rows picked and summed: every pattern against NumPy's own indexing."""

import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.rows import FEW, sum_into, take

PATTERNS = {
    "one": [3],
    "all": [0, 1, 2, 3, 4, 5, 6, 7],
    "every third": [1, 4, 7],
    "each twice": [0, 0, 2, 2, 5, 5],
    "same": [4, 4, 4],
    "backwards": [7, 5, 3],
    "irregular": [0, 0, 1, 3, 3, 3, 7],
}


@pytest.mark.parametrize("rows", PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize("axis", [0, 1])
def test_take_is_numpy_indexing(rows, axis):
    x = np.random.default_rng(0).normal(size=(8, 8, 3))
    np.testing.assert_array_equal(take(jnp.asarray(x), rows, axis), np.take(x, rows, axis))


@pytest.mark.parametrize("rows", [sorted(rows) for rows in PATTERNS.values()], ids=PATTERNS)
@pytest.mark.parametrize("n", [8, FEW + 1], ids=["few", "many"])
def test_sum_into_is_numpy_scatter_add(rows, n):
    x = np.random.default_rng(1).normal(size=(len(rows), 2))
    expected = np.zeros((n, 2))
    np.add.at(expected, rows, x)
    np.testing.assert_allclose(sum_into(jnp.asarray(x), rows, n), expected, rtol=1e-15)
