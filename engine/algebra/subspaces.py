"""Subspaces of motions and forces, by matrices whose columns span them (Featherstone 2008, sections 3.3 and 3.5).

Motions and forces are in spaces dual to each other: the complement of a space of motions is one of forces. So the
wrench that a joint transmits has two parts, active forces of motors and springs and the constraint forces of bearings:

    f_J = T_a tau + T lambda (3.34),    T_a^T S = 1 (3.35),    T^T S = 0 (3.36),    S^T f_J = tau (3.37)

S spans the motions of the joint, T the wrenches orthogonal to them; T_a describes how the motor pushes: by a pure
couple about the axis, or by a gear's tooth at some radius. It does not change the motion, only the load of the bearings
(example 3.2). Wrenches are (moment, force), twists (angular, linear), in any common frame.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from .pseudo_inverse import apply, times


class Decomposition(NamedTuple):
    """The parts (..., n) of a vector, one in each of two subspaces."""

    first: Array
    second: Array


def decompose(S1: Array, S2: Array, x: Array) -> Decomposition:
    """Decompose x = x1 + x2 with x1 in the range of S1 (..., n, m) and x2 in that of S2 (..., n, n - m): (3.27).

    The two must span the whole space between them (3.24).
    """
    coordinates = jnp.linalg.solve(jnp.concatenate([S1, S2], -1), x[..., None])
    first, second = jnp.split(coordinates, [S1.shape[-1]], -2)
    return Decomposition(times(S1, first)[..., 0], times(S2, second)[..., 0])


def complement(S: Array) -> Array:
    """The complement T (..., n, n - m), orthonormal columns orthogonal to S (..., n, m) of independent columns."""
    return jnp.linalg.qr(S, mode="complete")[0][..., S.shape[-1] :]


def split_force(I: Array, S: Array, f: Array) -> Decomposition:
    """Split a force on a constrained body: I S (S^T I S)^-1 S^T f accelerates it, the bearings carry the rest (3.28).

    I (..., n, n) inertia, S (..., n, m) its free motions, f (..., n). Any S with the same range gives the same.
    """
    IS = times(I, S)
    alpha = jnp.linalg.solve(times(S.mT, IS), apply(S.mT, f)[..., None])[..., 0]
    active = apply(IS, alpha)
    return Decomposition(active, f - active)


def active_subspace(S: Array, wrenches: Array) -> Array:
    """T_a (..., 6, nf): the wrenches of actuators (..., 6, nf), scaled so that they do the work of unit joint forces.

    S: (..., 6, nf).  One column per actuator; they must be independent in the work they do.
    """
    return jnp.linalg.solve(times(S.mT, wrenches).mT, wrenches.mT).mT


def bearing_forces(transmitted: Array, S: Array, Ta: Array) -> Array:
    """T lambda = f_J - T_a S^T f_J (..., 6): the part of a joint's wrench that its bearings carry.

    transmitted: f_J (..., 6), see `joint_wrenches`; S, Ta: (..., 6, nf), in its axes and about its point. The columns
    of `jacobian(model, q, link)` that belong to the link's own joint are S in world axes about the link's origin.
    """
    return transmitted - apply(Ta, apply(S.mT, transmitted))
