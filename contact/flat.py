"""Contacts of bodies that stay in a plane: one of several that differ only along the plane's normal is enough.

A solid that moves in a plane touches a floor at four corners. Two of them have the same effect as the other two, since
forces and torques out of the plane change nothing. One of each two stays, and acts in the plane.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..collision.passage import ROWS
from ..engine.algebra.rotation import Quat
from ..engine.algebra.vec3 import Vec3
from ..engine.model import Model
from .contacts import Contacts
from .gather_scatter import gather

ALIKE = 1e-6  # largest square of the difference of two normals


def drop_repeated(model: Model, contacts: Contacts) -> Contacts:
    """Move contacts of bodies in a plane into it, and deactivate those that repeat another one of their pair.

    The rows of a pair are adjacent.
    """
    flat = model.topology.in_plane
    if not any(flat):
        return contacts
    ends = [_planes(model, flat, link) for link in (contacts.link_a, contacts.link_b)]
    (normal_a, offset_a, flat_a), (normal_b, offset_b, flat_b) = ends
    world_a, world_b = contacts.link_a < 0, contacts.link_b < 0
    skew = normal_a.cross(normal_b)
    in_plane = (flat_a | world_a) & (flat_b | world_b) & (flat_a | flat_b) & (skew.dot(skew) <= ALIKE)
    in_plane &= contacts.pair >= 0
    normal = jax.tree.map(lambda a, b: jnp.where(flat_a, a, b), normal_a, normal_b)
    off = jnp.where(in_plane, contacts.point.dot(normal) - jnp.where(flat_a, offset_a, offset_b), 0)
    contacts = contacts._replace(point=contacts.point - normal * off)

    def repeats(k: int) -> Array:
        """Return whether each contact repeats the one k rows before."""
        late, early = (lambda x: x[k:]), (lambda x: x[: len(x) - k])
        both = (late(contacts.pair) == early(contacts.pair)) & early(contacts.active)
        apart, turned = (
            jax.tree.map(lambda x: late(x) - early(x), v) for v in (contacts.point, contacts.frame.rows[2])
        )
        same = both & (apart.dot(apart) <= model.gap_band**2) & (turned.dot(turned) <= ALIKE)
        return jnp.concatenate([jnp.zeros_like(same, shape=(k, *same.shape[1:])), same])

    active = contacts.active
    for k in range(1, min(ROWS, len(contacts.gap))):
        active = active & ~(in_plane & repeats(k))
    return contacts._replace(active=active)


def _planes(model: Model, flat: tuple[bool, ...], link: Array) -> tuple[Vec3, Array, Array]:
    """Return the normal of the plane of each contact's link, the plane's offset [m], and whether the link has one.

    link: (C, *batch)."""
    there = np.array([*flat, False])
    normal = Quat.of_array(model.joint_quaternion).matrix() @ Vec3.of(model.axis)

    def column(x: Array) -> Array:
        x = jnp.moveaxis(x, -1, 0)
        x = jnp.concatenate([x, jnp.zeros_like(x[:1])])
        return gather(jnp.where(there.reshape(-1, *(1,) * (x.ndim - 1)), x, 0), link, 0)

    return jax.tree.map(column, normal), column(normal.dot(Vec3.of(model.joint_position))), jnp.asarray(there)[link]
