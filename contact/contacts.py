"""Contacts: what a scene's impulses are asked for, whether two shapes touch or a joint stands at its limit."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from ..engine.algebra.vec3 import Mat3, Vec3


class Contacts(NamedTuple):
    """Points of contact of a scene, C rows, components (C, *batch); which of them are real, `active` says.

    pair: row of `topology.pairs`, -1 where it is a joint's limit.  dof: the degree of freedom at its limit, else -1.
    link_a, link_b: links that meet, -1 the world; at a limit the joint's link and its parent.
    gap: signed [m], at a limit [rad or m].
    frame: contact frame (rows t1, t2, n) in the world; n from B to A. At a limit n.z is +1 or -1: the way back.
    point: midway between the two surfaces, in the world [m].
    surface: velocity of A's surface less B's where statics move as conveyors do, world axes [m/s].
    friction, restitution: of the pair, or the limit.
    code: (*batch) result code.  needed: (*batch) how many contacts there are, should there be no room for all.
    """

    pair: Array
    dof: Array
    link_a: Array
    link_b: Array
    active: Array
    gap: Array
    frame: Mat3
    point: Vec3
    surface: Any
    friction: Array
    restitution: Array
    code: Array
    needed: Array

    @property
    def is_limit(self) -> Array:
        """(C, *batch) whether the contact is a joint's limit."""
        return self.dof >= 0


def tangents(n: Vec3) -> Mat3:
    """The contact frame (rows t1, t2, n) about a unit normal n; smooth but where n.z changes sign.

    Duff et al., Building an Orthonormal Basis, Revisited (JCGT 6, 2017): no square root, no branch.
    """
    sign = jnp.where(n.z >= 0, 1.0, -1.0).astype(jnp.result_type(n.z))
    a = -1 / (sign + n.z)
    b = n.x * n.y * a
    t1 = Vec3(1 + sign * n.x * n.x * a, sign * b, -sign * n.x)
    t2 = Vec3(b, sign + n.y * n.y * a, -n.y)
    return Mat3.from_rows(t1, t2, n)
