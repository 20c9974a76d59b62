"""Implicit motion constraints, K a = k, put on equations of motion H a + C = tau (Featherstone 2008, section 3.2).

    [H  K^T] [   a    ]   [tau - C]
    [K   0 ] [-lambda ] = [   k   ]        (3.17)

The matrix has rank n + rank K. Departure: it is not solved as it stands. K's null space, by the projector P, gives the
same accelerations if constraints are redundant, and the smallest of the forces that are then possible; H must be
positive definite only on the motions that the constraints allow.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from .pseudo_inverse import apply, beside, pseudo_inverse, size, times

DEPENDENT = 1e3  # times the rounding of K: singular values of K that are smaller count as zero


class Implicit(NamedTuple):
    """acceleration (..., n), and force (..., nc): lambda, of least norm if the constraints are redundant."""

    acceleration: Array
    force: Array


def constrain_implicitly(H: Array, C: Array, tau: Array, K: Array, k: Array) -> Implicit:
    """Solve (3.17). H (..., n, n) symmetric; C, tau (..., n); K (..., nc, n); k (..., nc) in the range of K."""
    small = DEPENDENT * jnp.finfo(K.dtype).eps * size(K)
    inverse = pseudo_inverse(K, small)
    P, start = beside(inverse, K), apply(inverse, k)
    scale = jnp.trace(H, axis1=-2, axis2=-1)[..., None, None]
    inner = times(P, H, P) + scale * times(inverse, K)  # the second term only fills the complement of P
    rest = apply(P, tau - C - apply(H, start))
    a = start + apply(P, jnp.linalg.solve(inner, rest[..., None])[..., 0])
    return Implicit(a, apply(inverse.mT, apply(H, a) + C - tau))


def implicit_matrix(H: Array, K: Array) -> Array:
    """The matrix of (3.17), (..., n + nc, n + nc)."""
    nothing = jnp.zeros((*K.shape[:-1], K.shape[-2]), K.dtype)
    return jnp.concatenate([jnp.concatenate([H, K.mT], -1), jnp.concatenate([K, nothing], -1)], -2)
