"""Symmetric positive definite blocks on a graph, W = L D L^T, eliminated level by level (`elimination_order.py`)."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.lax import fori_loop

from ..algebra.fence import fence
from ..rows import sum_by_target, take
from .elimination_order import Level


class Blocks(NamedTuple):
    """W = L D L^T, per level: 1/D (pivots, w, w, *batch) and L (edges, w, w, *batch)."""

    inverse: Array
    L: Array


def factor(levels: tuple[Level, ...], D: Array, K: Array) -> list[Blocks]:
    """Factor D (joints, w, w, *batch), blocks of the joints, and K (edges, w, w, *batch), the later joint's rows."""
    blocks = []
    for level in levels:
        inverse, own = _inverse(D[: level.pivots]), K[: len(level.pivot)]
        D, K = D[level.pivots :], K[len(level.pivot) :]
        L = own
        if level.pivot:
            L = products(own, take(inverse, level.pivot))
            D = D - sum_by_target(products(L, own), level.later, len(D))
        if level.edge:
            K = K - sum_by_target(products(take(L, level.one), take(own, level.other)), level.edge, len(K))
        blocks.append(Blocks(inverse, L))
    return blocks


def substitute(levels: tuple[Level, ...], factor: list[Blocks], r: Array) -> Array:
    """Solve L D L^T x = r, (joints, w, k, *batch)."""
    met: list[Array] = []
    for level, (_, L) in zip(levels, factor, strict=True):
        met.append(r[: level.pivots])
        r = r[level.pivots :]
        if level.pivot:
            r = r - sum_by_target(_times(L, take(met[-1], level.pivot)), level.later, len(r))
    x = r
    for level, (inverse, L), own in zip(reversed(levels), reversed(factor), reversed(met), strict=True):
        own = _times(inverse, own)
        if level.pivot:
            own = own - sum_by_target(_times(L.swapaxes(1, 2), take(x, level.later)), level.pivot, len(own))
        x = jnp.concatenate([own, x])
    return x


@fence
def products(A: Array, B: Array) -> Array:
    """Products A B^T of each pair: (n, w, v, *batch), (n, u, v, *batch)."""
    return (A[:, :, None] * B[:, None]).sum(3)


@fence
def _times(A: Array, x: Array) -> Array:
    """Products A x of each pair: (n, w, v, *batch), (n, v, k, *batch)."""
    return (A[:, :, :, None] * x[:, None]).sum(2)


@fence
def _inverse(A: Array) -> Array:
    """Inverses of symmetric positive definite matrices (n, w, w, *batch), by sweeps."""
    w = A.shape[1]
    number = jnp.arange(w).reshape(1, w, *(1,) * (A.ndim - 3))

    def sweep(k: Array, A: Array) -> Array:
        here = number == k
        column = jnp.where(here[:, None], A, 0).sum(2)
        inverse = 1 / jnp.where(here, column, 0).sum(1)
        scaled = column * inverse[:, None]
        A = A - scaled[:, :, None] * column[:, None]
        A = jnp.where(here[:, :, None], scaled[:, None], jnp.where(here[:, None], scaled[:, :, None], A))
        return jnp.where(here[:, :, None] & here[:, None], -inverse[:, None, None], A)

    return -fori_loop(0, w, sweep, A)
