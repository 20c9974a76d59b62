"""The true rows of a mask brought to the front, so that loops can end at their count."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array


def in_front(mask: Array, room: int) -> tuple[Array, Array]:
    """Where the true rows of mask (n, *batch) are, in order: rows (room, *batch), and which of these are real.

    By binary search in the running count: no sort, around which a loop would not compile to one function.
    """
    count = jnp.cumsum(mask, 0, dtype=jnp.int32).reshape(len(mask), -1)
    wanted = jnp.arange(1, room + 1, dtype=jnp.int32)
    search = jax.vmap(lambda x: jnp.searchsorted(x, wanted, method="scan_unrolled"), 1, 1)
    rows = jnp.minimum(search(count), len(mask) - 1).astype(jnp.int32)
    real = wanted[:, None] <= count[-1]
    return rows.reshape(room, *mask.shape[1:]), real.reshape(room, *mask.shape[1:])
