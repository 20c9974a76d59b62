"""Manifolds: the common part of two flat faces, and four points that represent it.

The common part is found by clipping every edge of one face by the sides of the other, all at once (Cyrus &
Beck, 1978); of its corners `spread` keeps four that span as large an area as any four of them can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.fence import compute_once, fence
from ...engine.algebra.vec3 import Scalar, Vec3, pytree
from ...engine.algebra.zero import ZERO
from .near import Near, at, only_where, perpendicular, select, where

T = TypeVar("T")
TILT = 0.05  # [rad] a corner whose gap closes only by a larger tilt is left out
TOUCHES = 1e-4  # [rad] a corner whose gap closes by this tilt counts half
ALONE = -1e30  # [m^2] a point alone is no diagonal, if there is another
FEW = (4, 8)  # candidates: most contacts have no more
MANY = 24  # candidates; of more, only the extreme ones in this many directions are examined first
EXTREMES = 16


@pytree
class Face:
    """The flat part of a shape towards the contact: K corners, K sides.

    point: (K, *items), in turn around the face [m]; the ends of a segment are its corners, and also its sides.
    side: (K, *items) outward normals of the sides, within the face; bound: (K, *items) the sides' offsets along them.
    normal: (*items) outward; flat: (*items) whether the face has an area.
    """

    point: Vec3
    side: Vec3
    bound: Scalar
    normal: Vec3
    flat: Array


def manifold(row: Near, face_a: Face, face_b: Face) -> tuple[Near, ...]:
    """Up to four rows for a contact whose closest row is known: only that row unless a face lies flat on it.

    Two edges may be closest while faces lean on each other by less than TILT, as when a box lands: the other three
    rows are then where the faces would meet next, no deeper than the closest.
    """
    along_a, along_b = -face_a.normal.dot(row.normal), face_b.normal.dot(row.normal)
    # the closest points are in a face if the normal is the face's, up to the error of its direction
    eps = jnp.finfo(row.gap.dtype).eps
    flat = 1 - 2 * eps ** (2 / 3)  # an angle of 1e-5 rad, in single precision of 1e-2 rad
    flat_a, flat_b = face_a.flat & (along_a > flat), face_b.flat & (along_b > flat)
    tilt = min(flat, math.cos(TILT))
    leans_a, leans_b = face_a.flat & (along_a > tilt), face_b.flat & (along_b > tilt)
    alone = jax.tree.map(lambda x: jnp.broadcast_to(x, jnp.shape(row.gap)), row)
    none = only_where(False, alone)

    def meet_faces() -> tuple[Near, ...]:
        size = max(face_a.bound.shape[0], face_b.bound.shape[0])
        both = pad_face(face_a, size), pad_face(face_b, size)
        on_a = compute_once(leans_a & (~leans_b | (along_a >= along_b)))
        reference, other = select(on_a, both, both[::-1])
        up = select(on_a, -row.normal, row.normal)  # from the reference to the other
        candidates = _common(reference, other, up)
        common = only_where(leans_a | leans_b, select(on_a, candidates.flip(), candidates))
        first, *others = spread(common, row.normal)
        # a face that is not quite flat has its closest point elsewhere
        rough = eps**0.75 * (_extent(reference.point) + _extent(other.point))
        exact = (flat_a | flat_b) & (jnp.abs(first.gap - row.gap) <= rough)
        others = [other._replace(gap=jnp.maximum(other.gap, row.gap)) for other in others]
        return where(exact, first, alone), *others

    return jax.lax.cond((leans_a | leans_b).any(), meet_faces, lambda: (alone, none, none, none))


def pad_face(face: Face, size: int) -> Face:
    """Pad the face by repeating its last corner and side."""

    def pad(x):
        return jnp.concatenate([x, jnp.broadcast_to(x[-1:], (size - x.shape[0], *x.shape[1:]))])

    if face.bound.shape[0] == size:
        return face
    point, side, bound = jax.tree.map(pad, (face.point, face.side, face.bound))
    return Face(point, side, bound, face.normal, face.flat)


@fence
def _common(reference: Face, other: Face, up: Vec3) -> Near:
    """Corners of the part of `other` that lies above `reference`, as rows whose A is the other."""
    first = jax.tree.map(lambda x: x[0], (reference.point, other.point))
    slack = 4e3 * jnp.finfo(up.x.dtype).eps * _extent(reference.point)  # equal faces must not miss each other
    # every edge of the other, clipped by all sides of the reference
    down = _onto(other.point, first[0], reference.normal, up)
    beyond = _each(reference.side).dot(down) - _each(reference.bound)  # (sides, corners, *items)
    beyond = jnp.where(jnp.abs(beyond) <= slack, 0.0, beyond)
    next_beyond = jnp.roll(beyond, -1, 1)
    step = next_beyond - beyond
    crossing = -beyond / jnp.where(step == 0, 1.0, step)
    enter = jnp.maximum(jnp.max(jnp.where(step < 0, crossing, 0.0), 0), 0.0)
    leave = jnp.minimum(jnp.min(jnp.where(step > 0, crossing, 1.0), 0), 1.0)
    inside = ~((step == 0) & (beyond > 0)).any(0) & (enter <= leave)
    edge = jax.tree.map(lambda x: jnp.roll(x, -1, 0) - x, other.point)
    # also if nothing is inside: a point far away would take the precision from all others
    enter, leave = jnp.clip(enter, 0.0, 1.0), jnp.clip(leave, 0.0, 1.0)
    ends = [_row(other.point + edge * t, first[0], reference.normal, up, inside) for t in (enter, leave)]
    # every corner of the reference inside the other
    above = _onto(reference.point, first[1], other.normal, up)
    outside = (_each(other.side).dot(above) - _each(other.bound) > slack).any(0) | ~other.flat
    corners = _row(above, first[0], reference.normal, up, ~outside)
    return jax.tree.map(lambda *x: jnp.concatenate([jnp.broadcast_to(y, ends[0].gap.shape) for y in x]), *ends, corners)


def _each(values: T) -> T:
    """Insert an axis for the corners after that of the sides."""
    return jax.tree.map(lambda x: x[:, None], values)


def _row(point: Vec3, on: Vec3, normal: Vec3, up: Vec3, there: Array) -> Near:
    foot = _onto(point, on, normal, up)
    return Near(jnp.where(there, (point - foot).dot(up), jnp.inf), up, point, foot)


def _onto(point: Vec3, on: Vec3, normal: Vec3, along: Vec3) -> Vec3:
    """Move the point along a direction onto the plane through `on`; not if the direction is parallel to the plane."""
    slope = along.dot(normal)
    slope = jnp.where(jnp.abs(slope) < 0.1, jnp.inf, slope)
    return point - along * ((point - on).dot(normal) / slope)


def _extent(point: Vec3) -> Scalar:
    """Size of the box around points along the leading axis."""
    return sum(jnp.max(x, 0) - jnp.min(x, 0) for x in (point.x, point.y, point.z))


def spread(rows: Near, normal: Vec3) -> tuple[Near, ...]:
    """Four of many rows (N, *items) of one contact: the closest first, and those that span the largest area with it,
    seen along a normal (*items). The rows' own normals may be a single one for all.

    If all gaps are equal, the area is the largest that any four of the points span. Rows whose gap closes only by a
    tilt above TILT, and rows that add no area, are left out (gap inf). Touching rows take precedence over hovering
    ones: a corner that carries a stone, or is about to, must not be dropped for one far from the ground.
    """
    flat = _project_along(rows, normal)
    n = flat.x.shape[0]
    flat = flat._replace(there=_distinct(flat)) if FEW[0] < n <= MANY else flat

    def of_some(few: Array, one: Callable[[_Flat], tuple[Array, Array]]) -> tuple[Array, ...]:
        some = _at_all(few, flat)
        return tuple(at(rank, few) for rank in one(some))

    def of_all() -> tuple[Array, ...]:
        if n <= MANY:
            return _best(flat)
        few = _extremes(flat)
        tilted = lambda: of_some(few, _from_closest)  # noqa: E731
        return _improve_diagonal(flat, *jax.lax.cond(flat.level.any(), lambda: of_some(few, _best), tilted))

    def of_at_most(tiers: tuple[int, ...]) -> tuple[Array, ...]:
        if not tiers or n <= tiers[0]:
            return of_all()
        few, *more = tiers
        first = lambda: of_some(_first(flat.there, jnp.arange(1, few + 1)), _best)  # noqa: E731
        return jax.lax.cond((flat.there.sum(0) <= few).all(), first, lambda: of_at_most(tuple(more)))

    i, j = of_at_most(FEW)
    return _four(rows, normal, flat, i, j)


class _Flat(NamedTuple):
    """Rows seen along the normal: x, y (N, *items) [m]; there: which of them count; gap; level (*items): whether all
    gaps that count are equal; size (*items): extent [m]; hovers: height above the closest, 1 counts half."""

    x: Scalar
    y: Scalar
    there: Array
    gap: Scalar
    level: Array
    size: Scalar
    hovers: Scalar

    @property
    def weight(self) -> Scalar:
        """The weight of a row's part of an area."""
        return 1 / (1 + self.hovers * self.hovers)

    @property
    def rough(self) -> Scalar:
        return 1e3 * jnp.finfo(self.size.dtype).eps * self.size


@fence
def _project_along(rows: Near, normal: Vec3) -> _Flat:
    t1 = perpendicular(normal)
    x, y = rows.b.dot(t1), rows.b.dot(normal.cross(t1))
    x, y = x - x[:1], y - y[:1]  # areas of faraway points would cancel
    there = rows.gap < jnp.inf
    size = jnp.max(jnp.where(there, jnp.abs(x) + jnp.abs(y), 0.0), 0)
    lowest = jnp.min(rows.gap, 0)
    there &= rows.gap <= lowest + 2 * TILT * size
    flat = _Flat(x, y, there, rows.gap, there[0], size, size)
    above = jnp.where(there, rows.gap - lowest, 0)
    level = (above <= flat.rough).all(0)
    half = TOUCHES * jnp.where(size > 0, size, 1)
    return flat._replace(level=level, hovers=jnp.where(above <= flat.rough, 0, above / half))


@fence
def _distinct(flat: _Flat) -> Array:
    """Rows that count; of those at one place, but for rounding, the closest: flush faces have each corner thrice."""
    x, y, gap, there = flat.x, flat.y, flat.gap, flat.there
    kept = []
    for k in range(len(x)):
        same = there & (jnp.abs(x - x[k]) + jnp.abs(y - y[k]) <= flat.rough)
        before = jnp.concatenate([gap[:k] <= gap[k], gap[k:] < gap[k]])
        kept.append(there[k] & ~(same & before).any(0))
    return jnp.stack(kept)


@fence
def _areas(first: _Flat, flat: _Flat) -> Scalar:
    """Twice the largest area of four points with a diagonal from one of the first (M, *items) to any (N, *items),
    (M, N, *items); -inf for diagonals that are not allowed.

    It is the product of the diagonal and the summed distances of the farthest points on its two sides.
    """
    x, y, there = flat.x, flat.y, flat.there
    dx, dy = x[None] - first.x[:, None], y[None] - first.y[:, None]
    length = jnp.sqrt(dx * dx + dy * dy)
    left = right = jnp.zeros_like(dx)
    weight = jnp.where(there, flat.weight, 0)
    for k in range(x.shape[0]):
        side = (dx * (y[k] - first.y[:, None]) - dy * (x[k] - first.x[:, None])) * weight[k]
        left, right = jnp.maximum(left, side), jnp.minimum(right, side)
    # on a tilted face the lowest point is one of the four
    starts = first.there & (flat.level | (first.gap <= jnp.min(flat.gap, 0)))
    area = (left - right + 1e-6 * length * length) * weight  # of points in a line, the farthest
    area = jnp.where(length > 0, area, ALONE)
    return jnp.where(starts[:, None] & there[None], area, -jnp.inf)


def _best(flat: _Flat) -> tuple[Array, Array]:
    """The best diagonal."""
    return _diagonal(_areas(flat, flat))


def _from_closest(flat: _Flat) -> tuple[Array, Array]:
    """The best diagonal from the closest point, which on a tilted face is one of the four."""
    i = jnp.argmin(jnp.where(flat.there, flat.gap, jnp.inf), 0)
    return i, _diagonal(_areas(_at_all(i[None], flat), flat))[1]


@fence
def _diagonal(area: Scalar) -> tuple[Array, Array]:
    i = jnp.argmax(jnp.max(area, 1), 0)  # in two steps: one over all pairs is ten times slower on a CPU
    return i, jnp.argmax(at(i, area), 0)


def _beside(flat: _Flat, i: Array, j: Array) -> tuple[Array, Array, Array]:
    """The points farthest from the line ij on each side, and twice the areas of all triangles with it."""
    (xi, yi), (xj, yj) = at(i, (flat.x, flat.y)), at(j, (flat.x, flat.y))
    dx, dy = xj - xi, yj - yi
    side = dx * (flat.y - yi) - dy * (flat.x - xi)
    k, l = (jnp.argmax(jnp.where(flat.there & (s > 0), s * flat.weight, -jnp.inf), 0) for s in (side, -side))
    return k, l, jnp.where(flat.there, side, 0)


@fence
def _improve_diagonal(flat: _Flat, i: Array, j: Array) -> tuple[Array, Array]:
    """Improve the diagonal (i, j) by all points: take the best for the best other one. The closest point stays."""
    k, l, side = _beside(flat, i, j)
    i2, j2, side2 = _beside(flat, k, l)
    better = flat.level & (at(i2, side2) - at(j2, side2) > at(k, side) - at(l, side))
    return jnp.where(better, i2, i), jnp.where(better, j2, j)


@fence
def _outside(flat: _Flat, triangle: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """The point farthest outside a triangle i, j, k, counterclockwise, with nothing beyond ij; and twice the area it
    adds."""
    (xi, yi), (xj, yj), (xk, yk) = (at(n, (flat.x, flat.y)) for n in triangle)
    from_j = (flat.x - xj) * (yk - yj) - (flat.y - yj) * (xk - xj)
    from_k = (flat.x - xk) * (yi - yk) - (flat.y - yk) * (xi - xk)
    beyond = jnp.where(flat.there, jnp.maximum(from_j, from_k), 0)
    m = jnp.argmax(beyond * flat.weight, 0)
    return m, at(m, beyond)


@fence
def _four(rows: Near, normal: Vec3, flat: _Flat, i: Array, j: Array) -> tuple[Near, ...]:
    k, l, side = _beside(flat, i, j)
    length = jnp.abs(at(j, flat.x) - at(i, flat.x)) + jnp.abs(at(j, flat.y) - at(i, flat.y))
    least = flat.rough * length
    on_left, on_right = at(k, side) > least, -at(l, side) > least
    m, beyond = _outside(flat, where(on_left, (i, j, k), (j, i, l)))
    more = (on_left ^ on_right) & (beyond > least)
    k, l = jnp.where(on_left, k, m), jnp.where(on_right, l, m)
    apart = (flat.there.any(0), length > flat.rough, on_left | more, on_right | more)
    many = rows.normal.x.ndim == rows.gap.ndim  # a normal for each row, or one for all
    four = [at(m, rows if many else rows._replace(normal=ZERO)) for m in (i, j, k, l)]
    four = four if many else [row._replace(normal=normal) for row in four]
    first, *others = (only_where(on, row) for on, row in zip(apart, four, strict=True))
    for m, other in enumerate(others):
        swap = other.gap < first.gap
        first, others[m] = where(swap, (other, first), (first, other))
    return first, *others


@fence
def _first(there: Array, which: Array) -> Array:
    """The indices (few, *items) of the first rows that count, those `which` (few,) = 1, 2, ...; 0 behind the last."""
    rank = jnp.cumsum(there, 0, dtype=jnp.int32)
    return jnp.stack([jnp.argmax(there & (rank == k), 0) for k in which])


@fence
def _extremes(flat: _Flat) -> Array:
    """Indices (EXTREMES + 1, *items) of the closest row and of those farthest in each of several directions."""
    angles = 2 * np.pi * (np.arange(EXTREMES) + 0.5) / EXTREMES
    picks = [jnp.argmin(flat.gap, 0)]
    for c, s in zip(np.cos(angles).tolist(), np.sin(angles).tolist(), strict=True):
        picks.append(
            jnp.argmax(jnp.where(flat.there, (c * flat.x + s * flat.y) - flat.hovers * flat.size, -jnp.inf), 0)
        )
    return jnp.stack(picks)


@fence
def _at_all(index: Array, flat: _Flat) -> _Flat:
    """The rows with these indices (k, *items)."""
    x, y, there, gap, hovers = (
        jnp.take_along_axis(v, index, 0) for v in (flat.x, flat.y, flat.there, flat.gap, flat.hovers)
    )
    return flat._replace(x=x, y=y, there=there, gap=gap, hovers=hovers)
