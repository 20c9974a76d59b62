"""Take and sum rows of a group at indices known when the program is traced.

Gathers and scatters are slow loops on a CPU, so the common patterns become slices, broadcasts, reshapes
and concatenations; only irregular patterns over many rows use gathers.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

FEW = 32  # up to this many rows an irregular pattern is written out piece by piece


def take(x: Array, index: Sequence[int], axis: int = 0) -> Array:
    """Take x at static indices along an axis."""
    indices, axis = np.asarray(index), axis % x.ndim
    steps = np.unique(np.diff(indices))
    if len(indices) == 1 or (len(steps) == 1 and steps[0] > 0):
        step = int(steps[0]) if len(steps) else 1
        return jax.lax.slice_in_dim(x, int(indices[0]), int(indices[-1]) + 1, step, axis)
    values, counts = np.unique(indices, return_counts=True)
    if len(values) < len(indices) and len(set(counts)) == 1 and (np.diff(indices) >= 0).all():
        once = jnp.expand_dims(take(x, values.tolist(), axis), axis + 1)
        shape = (*once.shape[: axis + 1], int(counts[0]), *once.shape[axis + 2 :])
        return jnp.broadcast_to(once, shape).reshape(*x.shape[:axis], len(indices), *x.shape[axis + 1 :])
    return jnp.take(x, indices, axis)


def sum_into(x: Array, rows: Sequence[int], n: int) -> Array:
    """Return sums (n, ...): row i adds the rows of x (len(rows), ...) whose entry in `rows`, which is sorted, is i."""
    counts = np.bincount(rows, minlength=n)
    if len(set(counts)) == 1:
        c = int(counts[0])
        return x if c == 1 else x.reshape(n, c, *x.shape[1:]).sum(1)
    if n > FEW:
        return jnp.zeros((n, *x.shape[1:]), x.dtype).at[np.asarray(rows)].add(x)
    ends = np.cumsum(counts)
    none = jnp.zeros((1, *x.shape[1:]), x.dtype)
    pieces = [x[end - c : end].sum(0, keepdims=True) if c else none for c, end in zip(counts, ends, strict=True)]
    return jnp.concatenate(pieces)


def sum_by_target(x: Array, targets: Sequence[int], n: int) -> Array:
    """Return sums (n, ...) by gathers alone: row i adds the rows of x (len(targets), ...) whose target is i, in any
    order; negative targets are dropped. With a scatter a step would not be one function on a CPU."""
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
