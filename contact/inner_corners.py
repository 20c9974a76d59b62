"""Inner corners: contacts of flush shapes of one link are those of one shape.

A box on four tiles of a floor touches each with a quarter of its face. Of the sixteen corners of the quarters, those on
seams are corners of nothing: around them the quarters fill half of the plane or all of it. Their impulses would add
nothing that the others cannot exert, except that friction would act at more points.

A contact is not active if the angles of its own face and of the faces that have a corner at the same point, with the
same normal, add up to at least 180 degrees; and if one of several at the same point is enough. All are of shapes of the
same two links, with the same friction and restitutions. An angle is that between the directions to the other corners
of the same pair of shapes.
"""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp
from jax import Array

from ..collision.geometry.near import X_AXIS, length_and_direction
from ..collision.passage import ROWS
from ..collision.seams import differ, may_meet_at_seams
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import compact, in_front, last_row
from ..engine.model import Model
from .contacts import Contacts
from .determine import ENVELOPE, gather_pairs, in_envelope
from .gather_scatter import gather

HALF_TURN = 1 - 1e-3  # of 180 degrees


def drop_inner_corners(model: Model, contacts: Contacts) -> Contacts:
    """Mark contacts that others make needless as inner, not active, and put them behind all that are."""
    if not may_meet_at_seams(model.topology) or model.topology.driven:  # parts of a conveyor may differ
        return contacts
    inner = _inner(*jax.lax.stop_gradient((model, contacts)))
    active, status = contacts.active & ~inner, (contacts.code, contacts.needed)
    (front, real), (behind, _) = (compact(x, len(active)) for x in (active, inner))
    rows = _numbers(active)
    order = jnp.where(real, front, gather(behind, jnp.maximum(rows - real.sum(0, dtype=jnp.int32), 0), 0))
    contacts = contacts._replace(active=active, inner=inner, code=None, needed=None)  # type: ignore[arg-type]
    ordered = jax.tree.map(lambda x: gather(x, order, 0), contacts)
    return ordered._replace(
        active=real, inner=~real & (rows < (active | inner).sum(0)), code=status[0], needed=status[1]
    )


def _inner(model: Model, contacts: Contacts) -> Array:
    """Return whether each contact is inner, (C, *batch)."""
    touches = in_front(in_envelope(model, contacts) & ~contacts.is_limit)
    n, point, rows = contacts.frame.rows[2], contacts.point, _numbers(touches)
    close, count = ENVELOPE * model.gap_band, last_row(touches)
    angles = _angles(touches, contacts.pair, n, point, close)
    spin = gather_pairs(model.pair_tangential_restitution, contacts.pair)
    alike = contacts.link_a, contacts.link_b, contacts.friction, contacts.restitution, spin

    def look(k: Array, inner: Array) -> Array:
        """Set whether contact k is inner."""
        here = rows == k
        one = lambda x: jax.lax.dynamic_index_in_dim(x, k, 0, keepdims=False)  # noqa: E731
        same = touches & ~differ(n, jax.tree.map(one, n))
        for x in alike:
            same &= x == one(x)
        apart = point - jax.tree.map(one, point)
        same &= (apart.dot(apart) <= close * close) & ((contacts.pair != one(contacts.pair)) | here)
        whole = jnp.where(same, angles, 0).sum(0) >= HALF_TURN * jnp.pi
        mine = one(angles)
        better = same & ((angles > mine) | ((angles == mine) & (rows < k)))
        return jnp.where(here, whole | better.any(0), inner)

    return jax.lax.fori_loop(jnp.int32(0), count, look, jnp.zeros_like(touches)) & touches


def _angles(touches: Array, pair: Array, n: Vec3, point: Vec3, close: Array) -> Array:
    """Return the angle (C, *batch) [rad] between the directions from each contact to the others of its pair.

    The rows of a pair are adjacent.  close: others that are not twice as far do not count [m].
    """
    others = []
    for by in (*range(1 - ROWS, 0), *range(1, ROWS)):
        other = functools.partial(jnp.roll, shift=by, axis=0)
        far, way = length_and_direction(jax.tree.map(other, point) - point, X_AXIS)
        there = touches & other(touches) & (other(pair) == pair) & (far > 2 * close)
        others.append((there, jax.tree.map(lambda x, there=there: jnp.where(there, x, 0), way)))
    total = functools.reduce(operator.add, (way for _, way in others))
    middle = length_and_direction(total, X_AXIS)[1]
    ends = [jnp.ones_like(point.x)] * 2  # cosines of the largest angles from the middle, to both sides
    for there, way in others:
        left, cosine = middle.cross(way).dot(n) > 0, jnp.clip(middle.dot(way), -1, 1)
        ends = [jnp.where(there & side, jnp.minimum(x, cosine), x) for x, side in zip(ends, (left, ~left), strict=True)]
    return jnp.arccos(ends[0]) + jnp.arccos(ends[1])


def _numbers(like: Array) -> Array:
    rows = jnp.arange(len(like), dtype=jnp.int32).reshape(-1, *(1,) * (like.ndim - 1))
    return jnp.broadcast_to(rows, like.shape)
