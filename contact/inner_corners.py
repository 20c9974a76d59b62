"""Inner corners: contacts of flush shapes of one link are those of one shape.

A box on four tiles of a floor touches each with a quarter of its face. Of the sixteen corners of the quarters, those on
seams are corners of nothing: around them the quarters fill half of the plane or all of it. Their impulses would add
nothing that the others cannot exert, except that friction would act at more points.

A contact is not active if the angles of its own face and of the faces that have a corner at the same point, with the
same normal, add up to at least 180 degrees; and if one of several at the same point is enough. All are of shapes of the
same two links, with the same friction and restitution. An angle is that between the directions to the other corners
of the same pair of shapes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ..collision.geometry.near import X_AXIS, length_and_direction
from ..collision.seams import may_meet_at_seams
from ..engine.algebra.vec3 import Vec3
from ..engine.model import Model
from .contacts import Contacts
from .determine import ENVELOPE, in_envelope

HALF_TURN = 1 - 1e-3  # of 180 degrees
PARALLEL = 1e-6  # square of the sine of the angle between equal normals


def drop_inner_corners(model: Model, contacts: Contacts) -> Contacts:
    """Mark contacts that others make needless as inner, and not active."""
    if not may_meet_at_seams(model.topology) or model.topology.driven:  # parts of a conveyor may differ
        return contacts
    inner = _inner(*jax.lax.stop_gradient((model, contacts)))
    return contacts._replace(active=contacts.active & ~inner, inner=inner)


def _inner(model: Model, contacts: Contacts) -> Array:
    """Return whether each contact is inner, (C, *batch)."""
    touches = in_envelope(model, contacts) & ~contacts.is_limit
    n, point, rows = contacts.frame.rows[2], contacts.point, _numbers(touches)
    close, count = ENVELOPE * model.gap_band, jnp.where(touches, rows + 1, 0).max()

    def angle(k: Array, angles: Array) -> Array:
        """Set the angle of contact k."""
        here = rows == k
        one = lambda x: jax.lax.dynamic_index_in_dim(x, k, 0, keepdims=False)  # noqa: E731
        normal, pair = jax.tree.map(one, (n, contacts.pair))
        far, way = length_and_direction(point - jax.tree.map(one, point), X_AXIS)
        there = touches & (contacts.pair == pair) & (far > 2 * close)
        way = jax.tree.map(lambda x: jnp.where(there, x, 0), way)
        middle = length_and_direction(jax.tree.map(lambda x: x.sum(0), way), X_AXIS)[1]
        left, cosine = middle.cross(way).dot(normal) > 0, jnp.clip(middle.dot(way), -1, 1)
        ends = [jnp.where(there & side, cosine, 1).min(0) for side in (left, ~left)]
        return jnp.where(here, jnp.arccos(ends[0]) + jnp.arccos(ends[1]), angles)

    def look(k: Array, inner: Array) -> Array:
        """Set whether contact k is inner."""
        here = rows == k
        one = lambda x: jax.lax.dynamic_index_in_dim(x, k, 0, keepdims=False)  # noqa: E731
        own = contacts.link_a, contacts.link_b, contacts.friction, contacts.restitution
        same = touches & _along(n, jax.tree.map(one, n))
        for x in own:
            same &= x == one(x)
        apart = point - jax.tree.map(one, point)
        same &= (apart.dot(apart) <= close * close) & ((contacts.pair != one(contacts.pair)) | here)
        whole = jnp.where(same, angles, 0).sum(0) >= HALF_TURN * jnp.pi
        mine = one(angles)
        better = same & ((angles > mine) | ((angles == mine) & (rows < k)))
        return jnp.where(here, whole | better.any(0), inner)

    angles = jax.lax.fori_loop(jnp.int32(0), count, angle, jnp.zeros_like(contacts.gap))
    return jax.lax.fori_loop(jnp.int32(0), count, look, jnp.zeros_like(touches)) & touches


def _numbers(like: Array) -> Array:
    rows = jnp.arange(len(like), dtype=jnp.int32).reshape(-1, *(1,) * (like.ndim - 1))
    return jnp.broadcast_to(rows, like.shape)


def _along(m: Vec3, n: Vec3) -> Array:
    across = m.cross(n)
    return across.dot(across) <= PARALLEL
