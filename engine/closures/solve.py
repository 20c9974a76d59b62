"""Symmetric positive semi-definite equations that may lack rank: W x = r for right sides that W can reach.

Loops are often redundant (a plane four-bar in space has five rows where two would do) and lose rank for a moment
(when it lies flat). So W + mu 1 is factored in place of W, mu a small part of W's mean diagonal, and the rest is taken
off by proximal steps (Carpentier, Budhiraja, Mansard 2021): x <- (W + mu 1)^-1 (r + mu x). A step leaves mu/(s + mu) of
the part along an eigenvector with eigenvalue s: parts that matter settle to rounding, parts with s far below mu do not
move. Started at 0, x tends to the solution of least norm.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.lax import fori_loop

from ..algebra.fence import fence

SMALL = {4: 1e-5, 8: 1e-9}  # mu by W's mean diagonal, by the bytes of a number
STEPS = 4


def solve_symmetric(W: Array, r: Array) -> Array:
    """x (m, k, *batch) of least norm with W x = r;  W (m, m, *batch), r (m, k, *batch)."""
    m = len(W)
    if not m:
        return r
    mean = sum(W[k, k] for k in range(m)) / m
    mu = jnp.where(mean > 0, mean, 1) * SMALL[W.dtype.itemsize]
    factor = _factor(W, mu)

    def step(_: int, x: Array) -> Array:
        return _substitute(factor, r + mu * x)

    return fori_loop(0, STEPS, step, jnp.zeros_like(r))


@fence
def _factor(W: Array, mu: Array) -> Array:
    """L and D of W + mu 1 = L D L^T in one array (m, m, *batch): L below the diagonal, 1/D on it."""
    m, lanes = len(W), (1,) * (W.ndim - 2)
    number = jnp.arange(m).reshape(m, *lanes)
    unit = (number[:, None] == number).astype(W.dtype)

    def eliminate(k: Array, L: Array) -> Array:
        here, later = number == k, number > k
        column = jnp.where(here, L, 0).sum(1)  # (m, *batch), row k's pivot and what is below it
        inverse = 1 / jnp.where(here, column, 0).sum(0)
        scaled = jnp.where(later, column * inverse, 0)
        L = L - scaled[:, None] * jnp.where(later, column, 0)
        below = jnp.where(later, scaled, jnp.where(here, inverse, column))
        return jnp.where(here, below[:, None], L)

    return fori_loop(0, m, eliminate, W + mu * unit)


@fence
def _substitute(L: Array, r: Array) -> Array:
    """(L D L^T)^-1 r"""
    m, lanes = len(L), (1,) * (L.ndim - 2)
    number = jnp.arange(m).reshape(m, 1, *lanes)

    def forward(k: Array, x: Array) -> Array:
        column = jnp.where(number[:, 0] == k, L, 0).sum(1)[:, None]
        own = jnp.where(number == k, x, 0).sum(0)
        return x - jnp.where(number > k, column * own, 0)

    def backward(back: Array, x: Array) -> Array:
        k = m - 1 - back
        column = jnp.where(number[:, 0] == k, L, 0).sum(1)[:, None]
        own = (jnp.where(number > k, column * x, 0)).sum(0)
        return jnp.where(number == k, x - own, x)

    diagonal = jnp.stack([L[k, k] for k in range(m)])[:, None]
    x = fori_loop(0, m, forward, r) * diagonal
    return fori_loop(0, m, backward, x)
