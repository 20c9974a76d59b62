"""Rows brought to the front, by either way, and loops that end at the last row."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.engine.compaction import compact, map_to_last


@pytest.mark.parametrize("room", [1, 5, 40])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_true_rows_come_first_in_their_order(share, room):
    masks = np.random.default_rng(3).random((40, 3)) < share
    many = compact(jnp.asarray(masks), room)  # lanes side by side: by search
    for lane in range(3):
        one = compact(jnp.asarray(masks[:, lane]), room)  # one lane: in one pass
        where = np.flatnonzero(masks[:, lane])[:room]
        assert np.asarray(one[1]).sum() == len(where)
        np.testing.assert_array_equal(np.asarray(one[0])[: len(where)], where)
        for x, y in zip(one, many, strict=True):
            np.testing.assert_array_equal(x, y[:, lane])


@pytest.mark.parametrize("last", [-1, 0, 16, 299])
def test_rows_up_to_the_last_are_computed_and_zeros_behind(last):
    x = jnp.asarray(np.random.default_rng(5).normal(size=300))
    there = jnp.zeros(300, bool).at[jnp.array([last // 2, last])].set(last >= 0)
    found = map_to_last(lambda scale, rows: scale * rows, there, 2.0, x, few=8)
    np.testing.assert_array_equal(np.asarray(found)[: last + 1], 2 * x[: last + 1])
    behind = np.asarray(found)[-(-(last + 1) // 8) * 8 :]
    np.testing.assert_array_equal(behind, 0.0)
    slope = jax.grad(lambda scale: map_to_last(lambda s, rows: s * rows, there, scale, x, few=8).sum())(2.0)
    np.testing.assert_allclose(slope, x[: last + 1].sum(), rtol=1e-12, atol=1e-12)
