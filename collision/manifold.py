"""Manifolds: where two flat faces meet, and the four points that stand for all of them.

The faces' common part is found by clipping every edge of one by the sides of the other, all at once (Cyrus &
Beck, 1978); of its corners `spread` keeps four that span as large an area as any four of them can.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..engine.algebra.fence import fence, settled
from ..engine.algebra.vec3 import Scalar, Vec3, pytree
from ..engine.algebra.zero import ZERO
from .near import Near, at, only_where, perpendicular, where

FLAT = 0.999  # cosine of the angle between a face's normal and the contact's up to which the face is flat on it
TILT = 0.05  # [rad] a corner that a larger tilt keeps apart is left out
MANY = 16  # candidates, above which only the extreme ones in so many directions are looked at
EXTREMES = 12


@pytree
class Face:
    """The flat part of a shape that looks along the contact: K corners, K sides.

    point: (K, *items), in turn around the face [m]; the ends of a segment are its corners, and its sides too.
    side: (K, *items) outward normals of the sides, within the face; bound: (K, *items) the sides' places along them.
    normal: (*items) outward; flat: (*items) whether it has an area.
    """

    point: Vec3
    side: Vec3
    bound: Scalar
    normal: Vec3
    flat: Any


def manifold(row: Near, face_a: Face, face_b: Face) -> tuple[Near, ...]:
    """Up to four rows for a contact whose closest row is known: that row alone unless a face lies flat on it."""
    along_a, along_b = -face_a.normal.dot(row.normal), face_b.normal.dot(row.normal)
    flat_a, flat_b = face_a.flat & (along_a > FLAT), face_b.flat & (along_b > FLAT)
    size = max(face_a.bound.shape[0], face_b.bound.shape[0])
    face_a, face_b = padded(face_a, size), padded(face_b, size)
    on_a = settled(flat_a & (~flat_b | (along_a >= along_b)))
    reference, other = where(on_a, (face_a, face_b), (face_b, face_a))
    up = where(on_a, -row.normal, row.normal)  # from the reference to the other
    candidates = _common(reference, other, up)
    found = where(on_a, candidates.mirrored(), candidates)
    first, *others = spread(found, row.normal)
    # a face that is not quite flat may have its closest point elsewhere
    rough = 1e4 * jnp.finfo(row.gap.dtype).eps * (_extent(reference.point) + _extent(other.point))
    some = (flat_a | flat_b) & (first.gap <= row.gap + rough)
    return where(some, first, row), *(only_where(some, other) for other in others)


def padded(face: Face, size: int) -> Face:
    """The face with its last corner and side repeated."""

    def pad(x):
        return jnp.concatenate([x, jnp.broadcast_to(x[-1:], (size - x.shape[0], *x.shape[1:]))])

    if face.bound.shape[0] == size:
        return face
    point, side, bound = jax.tree.map(pad, (face.point, face.side, face.bound))
    return Face(point, side, bound, face.normal, face.flat)


@fence
def _common(reference: Face, other: Face, up: Vec3) -> Near:
    """Corners of the part of `other` that stands over `reference`, as rows whose A is the other."""
    first = jax.tree.map(lambda x: x[0], (reference.point, other.point))
    slack = 4e3 * jnp.finfo(up.x.dtype).eps * _extent(reference.point)  # equal faces must not miss each other
    # every edge of the other, clipped by all sides of the reference
    down = _onto(other.point, first[0], reference.normal, up)
    beyond = _each(reference.side).dot(down) - _each(reference.bound)  # (sides, corners, *items)
    next_beyond = jnp.roll(beyond, -1, 1)
    step = next_beyond - beyond
    crossing = (slack - beyond) / jnp.where(step == 0, 1.0, step)
    enter = jnp.max(jnp.where(step < 0, crossing, 0.0), 0).clip(0, 1)
    leave = jnp.min(jnp.where(step > 0, crossing, 1.0), 0).clip(0, 1)
    inside = ~((step == 0) & (beyond > slack)).any(0) & (enter <= leave)
    edge = jax.tree.map(lambda x: jnp.roll(x, -1, 0) - x, other.point)
    ends = [_row(other.point + edge * t, first[0], reference.normal, up, inside) for t in (enter, leave)]
    # every corner of the reference inside the other
    above = _onto(reference.point, first[1], other.normal, up)
    outside = (_each(other.side).dot(above) - _each(other.bound) > slack).any(0) | ~other.flat
    corners = _row(above, first[0], reference.normal, up, ~outside)
    return jax.tree.map(lambda *x: jnp.concatenate([jnp.broadcast_to(y, ends[0].gap.shape) for y in x]), *ends, corners)


def _each(values: Any) -> Any:
    """Sides against corners: an axis for the corners after that of the sides."""
    return jax.tree.map(lambda x: x[:, None], values)


def _row(point: Vec3, on: Vec3, normal: Vec3, up: Vec3, there: Any) -> Near:
    foot = _onto(point, on, normal, up)
    return Near(jnp.where(there, (point - foot).dot(up), jnp.inf), up, point, foot)


def _onto(point: Vec3, on: Vec3, normal: Vec3, along: Vec3) -> Vec3:
    """The point moved along a direction onto the plane through `on`; left where the direction runs in the plane."""
    slope = along.dot(normal)
    slope = jnp.where(jnp.abs(slope) < 0.1, jnp.inf, slope)
    return point - along * ((point - on).dot(normal) / slope)


def _extent(point: Vec3) -> Scalar:
    """Size of the box around points along the leading axis."""
    return sum(jnp.max(x, 0) - jnp.min(x, 0) for x in (point.x, point.y, point.z))


def spread(rows: Near, normal: Vec3) -> tuple[Near, ...]:
    """Four of many rows (N, *items) of one contact: the closest first, and those that span the largest area with it,
    seen along a normal (*items). The rows' own normals may be one for all.

    Where all gaps are equal the area is the largest that any four of the points span. Rows that a tilt above TILT
    keeps apart, and rows that add no area, are not there (gap inf).
    """
    x, y, there, size = _seen_along(rows, normal)
    if x.shape[0] > MANY:
        rows, x, y, there = _extreme(rows, x, y, there)
    i, j = _diagonal(_areas(x, y, there, rows.gap, size))
    return _four(rows, normal, x, y, there, size, i, j)


@fence
def _seen_along(rows: Near, normal: Vec3) -> tuple[Scalar, Scalar, Any, Scalar]:
    """The points in two dimensions [m], which of them count, and their extent [m]."""
    t1 = perpendicular(normal)
    x, y = rows.b.dot(t1), rows.b.dot(normal.cross(t1))
    x, y = x - x[:1], y - y[:1]  # areas of faraway points would cancel
    there = rows.gap < jnp.inf
    size = jnp.max(jnp.where(there, jnp.abs(x) + jnp.abs(y), 0.0), 0)
    return x, y, there & (rows.gap <= jnp.min(rows.gap, 0) + 2 * TILT * size), size


@fence
def _areas(x: Scalar, y: Scalar, there: Any, gap: Scalar, size: Scalar) -> Scalar:
    """Twice the largest area of four points with the diagonal (i, j), (N, N, *items); -1 where it must not be one.

    It is half the product of the diagonal and what lies farthest from it on either side.
    """
    dx, dy = x[None] - x[:, None], y[None] - y[:, None]
    left = right = jnp.zeros_like(dx)
    for k in range(x.shape[0]):
        side = jnp.where(there[k], dx * (y[k] - y[:, None]) - dy * (x[k] - x[:, None]), 0.0)
        left, right = jnp.maximum(left, side), jnp.minimum(right, side)
    lowest = jnp.min(gap, 0)
    level = jnp.max(jnp.where(there, gap, -jnp.inf), 0) <= lowest + _rough(size)
    starts = there & (level | (gap <= lowest))  # on a tilted face the lowest point is one of the four
    area = left - right + 1e-6 * (dx * dx + dy * dy)  # of points in a line, the farthest two
    return jnp.where(starts[:, None] & there[None], area, -1.0)


def _rough(size: Scalar) -> Scalar:
    return 1e3 * jnp.finfo(size.dtype).eps * size


@fence
def _diagonal(area: Scalar) -> tuple[Any, Any]:
    i = jnp.argmax(jnp.max(area, 1), 0)  # in two steps: one over all pairs is ten times slower on a CPU
    return i, jnp.argmax(at(i, area), 0)


@fence
def _four(rows: Near, normal: Vec3, x: Any, y: Any, there: Any, size: Any, i: Any, j: Any) -> tuple[Near, ...]:
    (xi, yi), (xj, yj) = at(i, (x, y)), at(j, (x, y))
    side = (xj - xi) * (y - yi) - (yj - yi) * (x - xi)
    k, l = (jnp.argmax(jnp.where(there, s, -jnp.inf), 0) for s in (side, -side))
    rough, length = _rough(size), jnp.abs(xj - xi) + jnp.abs(yj - yi)
    apart = (there.any(0), length > rough, at(k, side) > rough * length, -at(l, side) > rough * length)
    many = rows.normal.x.ndim == rows.gap.ndim  # a normal for each row, or one for all
    four = [at(m, rows if many else rows._replace(normal=ZERO)) for m in (i, j, k, l)]
    four = four if many else [row._replace(normal=normal) for row in four]
    first, *others = (only_where(on, row) for on, row in zip(apart, four, strict=True))
    for m, other in enumerate(others):
        swap = other.gap < first.gap
        first, others[m] = where(swap, (other, first), (first, other))
    return first, *others


def _extreme(rows: Near, x: Scalar, y: Scalar, there: Any) -> tuple[Near, Scalar, Scalar, Any]:
    """The closest row and those that lie farthest in each of several directions."""
    angle = 2 * np.pi * (np.arange(EXTREMES) + 0.5) / EXTREMES
    scores = [
        -rows.gap,
        *(jnp.where(there, c * x + s * y, -jnp.inf) for c, s in zip(np.cos(angle), np.sin(angle), strict=True)),
    ]
    shared = rows.normal if rows.normal.x.ndim < rows.gap.ndim else None
    values = (rows if shared is None else rows._replace(normal=ZERO), x, y, there)
    rows, x, y, there = jax.tree.map(lambda *z: jnp.stack(z), *(at(jnp.argmax(s, 0), values) for s in scores))
    return rows if shared is None else rows._replace(normal=shared), x, y, there
