"""Sums over the edges of a graph by gathers alone: with a scatter a step would not be one function on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..rows import take


def gathered(x: Array, targets: Sequence[int], n: int) -> Array:
    """Sums (n, ...): row i adds the rows of x (len(targets), ...) whose target is i; negative ones are dropped."""
    mine: list[list[int]] = [[] for _ in range(n)]
    for row, target in enumerate(targets):
        if target >= 0:
            mine[target].append(row)
    most = max(map(len, mine), default=0)
    if not most:
        return jnp.zeros((n, *x.shape[1:]), x.dtype)
    places = np.array([rows + [len(x)] * (most - len(rows)) for rows in mine])
    if (places == len(x)).any():
        x = jnp.concatenate([x, jnp.zeros((1, *x.shape[1:]), x.dtype)])
    return sum(take(x, column) for column in places.T)  # type: ignore[return-value]
