"""Contacts: pairs of shapes that touch and joints at their limits, where impulses may act."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ..engine.algebra.vec3 import Mat3, Vec3
from ..engine.shaped import Bool, Float, Int


class Contacts(NamedTuple):
    """Contact points of a scene, C rows, components (C, *batch).

    pair: row of `topology.pairs`, -1 for a joint limit.
    dof: the degree of freedom at its limit, -1 for a pair.
    link_a, link_b: the links in contact, -1 for the world; at a limit the joint's link and its parent.
    active: whether the row is a contact; other rows may hold anything.
    gap: signed [m], at a limit [rad or m].
    frame: contact frame (rows t1, t2, n) in the world; n from B to A. At a limit n.z is +1 or -1, away from the limit.
    point: midway between the two surfaces, in the world [m].
    surface: velocity of A's conveyor surface less that of B, world axes [m/s].
    friction: friction coefficient.
    restitution: restitution coefficient.
    code: result code.
    needed: the number of contacts, if the capacity was exceeded; otherwise 0.
    inner: rows that touch and are not active, since others make them needless (`inner_corners.py`); None: none.
    """

    pair: Int[Array, " C *batch"]
    dof: Int[Array, " C *batch"]
    link_a: Int[Array, " C *batch"]
    link_b: Int[Array, " C *batch"]
    active: Bool[Array, " C *batch"]
    gap: Float[Array, " C *batch"]
    frame: Mat3
    point: Vec3
    surface: Vec3
    friction: Float[Array, " C *batch"]
    restitution: Float[Array, " C *batch"]
    code: Int[Array, "*batch"]
    needed: Int[Array, "*batch"]
    inner: Bool[Array, " C *batch"] | None = None

    @property
    def is_limit(self) -> Array:
        """Return whether the contact is a joint's limit, (C, *batch)."""
        return self.dof >= 0


def tangents(n: Vec3) -> Mat3:
    """Return the contact frame (rows t1, t2, n) of a unit normal n; smooth except where n.z changes sign.

    Duff et al., Building an Orthonormal Basis, Revisited (JCGT 6, 2017): no square root, no branch.
    """
    sign = jnp.where(n.z >= 0, 1.0, -1.0).astype(jnp.result_type(n.z))
    a = -1 / (sign + n.z)
    b = n.x * n.y * a
    t1 = Vec3(1 + sign * n.x * n.x * a, sign * b, -sign * n.x)
    t2 = Vec3(b, sign + n.y * n.y * a, -n.y)
    return Mat3.from_rows(t1, t2, n)
