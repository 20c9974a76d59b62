"""Vector subspaces by matrices whose columns span them (Featherstone 2008, section 3.3).

Motions and forces live in spaces dual to each other: the complement of a space of motions is one of forces.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from .pseudo_inverse import apply, times


class Parts(NamedTuple):
    """The parts (..., n) of a vector, one in each of two subspaces."""

    first: Array
    second: Array


def decompose(S1: Array, S2: Array, x: Array) -> Parts:
    """Decompose x = x1 + x2 with x1 in the range of S1 (..., n, m) and x2 in that of S2 (..., n, n - m): (3.27).

    The two must span the whole space between them (3.24).
    """
    coordinates = jnp.linalg.solve(jnp.concatenate([S1, S2], -1), x[..., None])
    first, second = jnp.split(coordinates, [S1.shape[-1]], -2)
    return Parts(times(S1, first)[..., 0], times(S2, second)[..., 0])


def complement(S: Array) -> Array:
    """The complement T (..., n, n - m), orthonormal columns orthogonal to S (..., n, m) of independent columns."""
    return jnp.linalg.qr(S, mode="complete")[0][..., S.shape[-1] :]


def split_force(I: Array, S: Array, f: Array) -> Parts:
    """Split a force on a constrained body: I S (S^T I S)^-1 S^T f accelerates it, the bearings carry the rest (3.28).

    I (..., n, n) inertia, S (..., n, m) its free motions, f (..., n). Any S with the same range gives the same.
    """
    IS = times(I, S)
    alpha = jnp.linalg.solve(times(S.mT, IS), apply(S.mT, f)[..., None])[..., 0]
    active = apply(IS, alpha)
    return Parts(active, f - active)
