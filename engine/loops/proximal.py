"""Symmetric positive semi-definite equations that may lack rank: W x = r for right-hand sides in the range of W.

Loops are often redundant (a plane four-bar in space has five rows where two would do) and lose rank for a moment
(when it lies flat). So W + mu 1 is factored instead of W, with mu a small part of W's mean diagonal, and the error is
removed by proximal steps (Carpentier, Budhiraja, Mansard 2021): x <- (W + mu 1)^-1 (r + mu x). A step leaves
mu/(s + mu) of the part along an eigenvector with eigenvalue s: parts that matter converge to rounding, parts with s far
below mu do not change. Started at 0, x tends to the solution of least norm.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.lax import dynamic_index_in_dim, dynamic_update_index_in_dim, fori_loop

from ..algebra.fence import fence

SMALL = {4: 1e-5, 8: 1e-9}  # mu by W's mean diagonal, by the bytes of a number
STEPS = 4


def solve_symmetric(W: Array, r: Array) -> Array:
    """x (m, k, *batch) of least norm with W x = r;  W (m, m, *batch), r (m, k, *batch)."""
    m = len(W)
    if not m:
        return r
    mean = _diagonal(W).mean(0)
    mu = jnp.where(mean > 0, mean, 1) * SMALL[W.dtype.itemsize]
    factor = _factor(W, mu)

    def step(_: int, x: Array) -> Array:
        return _substitute(factor, r + mu * x)

    return fori_loop(0, STEPS, step, jnp.zeros_like(r))


@fence
def _factor(W: Array, mu: Array) -> Array:
    """Factor W + mu 1 = L D L^T into one array (m, m, *batch): row k holds 1/D_k at k and L's column k behind it."""
    number = jnp.arange(len(W)).reshape(-1, *(1,) * (W.ndim - 2))
    unit = (number[:, None] == number).astype(W.dtype)

    def eliminate(k: Array, L: Array) -> Array:
        row = _row(L, k)  # the rest is symmetric: its row is its column
        inverse = 1 / _row(row, k)
        later = jnp.where(number > k, row, 0)
        scaled = later * inverse
        done = jnp.where(number == k, inverse, scaled)
        return dynamic_update_index_in_dim(L - scaled[:, None] * later, done, k, 0)

    return fori_loop(0, len(W), eliminate, W + mu * unit)


@fence
def _substitute(L: Array, r: Array) -> Array:
    """Solve (L D L^T) x = r."""
    m = len(L)
    number = jnp.arange(m).reshape(m, *(1,) * (L.ndim - 2))

    def forward(k: Array, x: Array) -> Array:
        return x - jnp.where(number > k, _row(L, k), 0)[:, None] * _row(x, k)

    def backward(back: Array, x: Array) -> Array:
        k = m - 1 - back
        later = (jnp.where(number > k, _row(L, k), 0)[:, None] * x).sum(0)
        return x - jnp.where(number == k, 1, 0)[:, None] * later

    x = fori_loop(0, m, forward, r) * _diagonal(L)[:, None]
    return fori_loop(0, m, backward, x)


def _diagonal(x: Array) -> Array:
    """Diagonal (m, *batch) of x (m, m, *batch)."""
    number = jnp.arange(len(x)).reshape(-1, *(1,) * (x.ndim - 2))
    return jnp.where(number[:, None] == number, x, 0).sum(1)


def _row(x: Array, k: Array) -> Array:
    return dynamic_index_in_dim(x, k, 0, keepdims=False)
