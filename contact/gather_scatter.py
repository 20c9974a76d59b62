"""Gather and scatter with indices that are known only at run time, lane by lane.

Both are scalar loops on a CPU. Sums into few rows compare indices instead.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ..engine.algebra.bounded import loop
from ..engine.algebra.fence import lane_programs

FEW = 16  # rows up to which comparing with each is cheaper than a scatter, unless a loop ends with the real rows


def gather(x: Array, index: Array, own: int) -> Array:
    """Return rows index (*m, *batch) of x (n, *own axes, *batch), as (*m, *own axes, *batch)."""
    lanes = x.ndim - 1 - own
    if lanes == 0:
        return jnp.take(x, index, axis=0, mode="clip")  # x[index] would also look for negative indices
    front, batch = index.shape[: index.ndim - lanes], index.shape[index.ndim - lanes :]
    flat = index.reshape(-1, *(1,) * own, *batch)
    x = jnp.broadcast_to(x, (*x.shape[: 1 + own], *batch))
    return jnp.take_along_axis(x, flat, 0).reshape(*front, *x.shape[1:])


def segment_sum(x: Array, index: Array, n: int, real: Array | None = None) -> Array:
    """Return sums (n, *own axes, *batch): row i sums rows of x (m, *own axes, *batch) whose index (m, *batch) is i.

    real: (m, *batch) bool, rows that may differ from 0; None: all.
    """
    own = x.ndim - index.ndim
    index = index.reshape(len(index), *(1,) * own, *index.shape[1:])
    if n <= FEW and not (lane_programs() and real is not None):
        return jnp.stack([jnp.where(index == i, x, 0).sum(0) for i in range(n)])
    none = jnp.zeros((n, *x.shape[1:]), x.dtype)
    if lane_programs():
        if real is None:
            return jax.lax.fori_loop(0, len(x), lambda k, sums: _add_at(sums, x[k], index[k]), none)
        number = jnp.arange(1, len(x) + 1, dtype=jnp.int32).reshape(-1, *(1,) * (real.ndim - 1))
        given = x, index, jnp.where(real, number, 0).max()
        return loop(len(x), _has_rows_left, _add_row, given, (jnp.int32(0), none))[1]
    if index.ndim == 1 + own:
        return none.at[index.reshape(-1)].add(x)
    others = jnp.meshgrid(*(jnp.arange(k) for k in x.shape), indexing="ij", sparse=True)
    return none.at[(index, *others[1:])].add(x)


def _has_rows_left(given: tuple[Array, Array, Array], carry: tuple[Array, Array]) -> Array:
    return carry[0] < given[2]


def _add_row(given: tuple[Array, Array, Array], carry: tuple[Array, Array]) -> tuple[Array, Array]:
    (x, index, _), (k, sums) = given, carry
    return k + 1, _add_at(sums, x[k], index[k])


def _add_at(sums: Array, row: Array, index: Array) -> Array:
    """Return the sums (n, ...) with one row added at its index.

    This is no scatter, because a loop around one would not compile to one function.
    """
    if index.size == 1:
        i = index.reshape(())
        old = jax.lax.dynamic_index_in_dim(sums, i, 0, keepdims=False)
        return jax.lax.dynamic_update_index_in_dim(sums, old + row, i, 0)
    here = jnp.arange(len(sums), dtype=index.dtype).reshape(-1, *(1,) * row.ndim) == index
    return sums + jnp.where(here, row, 0)
