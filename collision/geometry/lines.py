"""Contact along a line: the side of a cylinder or capsule, and a parallel edge, or another side.

Such shapes touch along a stretch of their lines, of which a kernel knows one point. The two ends of the stretch are
rows, too: with one point alone a body would tip to one side and the other in turn, by angles below rounding. The gap of
an end is exact also if the lines are a little skew; lines that are more skew touch where they cross.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.fence import compute_once, fence
from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Scalar, Vec3
from .manifold import Face
from .near import ORIGIN, Z_AXIS, Near, at, direction, length_and_direction, only_where, select, sign
from .solid import Solid

SIDES = ("capsule", "cylinder")  # kinds with a line on their side
ALONG = 0.99  # cosine of the angle up to which two lines count as parallel
ACROSS = 0.01  # largest cosine between a line and the normal
SLACK = 0.1  # of the radii: the largest difference between the gaps of an end and of the closest point
SKEW = {4: 1e-3, 8: 1e-7}  # by bytes per number: of the radius, the largest gap of an end because lines are skew
NEAR = 1e-6  # of an edge's length: a closest point nearer than this is on the edge


class AxisLine(NamedTuple):
    """middle: a point [m]; along: unit; half: half its length [m]; radius: of the surface about it [m]; there: whether
    the closest point is on it."""

    middle: Vec3
    along: Vec3
    half: Scalar
    radius: Scalar
    there: Array


def along_lines(
    kind_a: str, a: Solid, kind_b: str, b: Solid, X: Transform, faces: tuple[Face, Face], rows: tuple[Near, ...]
) -> tuple[Near, ...]:
    """The rows of a pair, the closest first, with the ends of the stretch along which the shapes touch.

    faces: of A and B towards each other, in A's frame.
    A capsule A is its core, see `inflate_core`.
    """
    if kind_a not in SIDES and kind_b not in SIDES:
        return rows
    first, axis = rows[0], X.R.columns[2]
    none = jnp.zeros_like(first.gap)
    if kind_a in SIDES:
        line_a = _side(kind_a, a, none, Z_AXIS, ORIGIN)
        line_b = _side(kind_b, b, none, axis, X.p) if kind_b in SIDES else _edge(faces[1], first.b, line_a.along)
    else:
        line_b = _side(kind_b, b, none, axis, X.p)
        line_a = _edge(faces[0], first.a, line_b.along)
    size = (a if kind_a in SIDES else b).size.x
    parallel = compute_once(_are_parallel(line_a, line_b, first, size))

    def with_ends() -> tuple[Near, ...]:
        ends = _ends(line_a, line_b, first, size)
        return tuple(select(parallel, x, y) for x, y in zip((*ends, only_where(False, ends[0])), rows[1:], strict=True))

    return first, *jax.lax.cond(parallel.any(), with_ends, lambda: rows[1:])


def _side(kind: str, solid: Solid, none: Scalar, along: Vec3, middle: Vec3) -> AxisLine:
    """The axis of a cylinder, or the core of a capsule."""
    along, middle = jax.tree.map(lambda x: none + x, (along, middle))
    radius = none + solid.size.x if kind == "cylinder" else none
    return AxisLine(middle, along, none + solid.size.y, radius, jnp.ones_like(none, bool))


@fence
def _edge(face: Face, point: Vec3, side: Vec3) -> AxisLine:
    """The edge of a face that a point is on; at a corner, the one that is more nearly parallel to a side."""
    ends = jax.tree.map(lambda x: jnp.roll(x, -1, 0), face.point)
    length, along = length_and_direction(ends - face.point, Z_AXIS)
    off = point - face.point
    way = off.dot(along)
    beside, beyond = off - along * way, jnp.maximum(jnp.maximum(-way, way - length), 0)
    on = (length > 0) & (beside.dot(beside) + beyond * beyond <= (NEAR * length) ** 2)
    parallel = jnp.where(on, jnp.abs(along.dot(side)), -1)
    start, along, length, parallel = at(jnp.argmax(parallel, 0), (face.point, along, length, parallel))
    half = length * 0.5
    return AxisLine(start + along * half, along, half, jnp.zeros_like(half), face.flat & (parallel >= 0))


@fence
def _are_parallel(a: AxisLine, b: AxisLine, first: Near, size: Scalar) -> Array:
    """Whether the closest row is on two parallel lines, across the normal."""
    n, gap = first.normal, first.gap
    across = jnp.maximum(jnp.abs(n.dot(a.along)), jnp.abs(n.dot(b.along))) < ACROSS
    aside = a.along.cross(b.along).dot(n) * jnp.minimum(a.half, b.half)  # of an end
    straight = aside * aside <= SKEW[gap.dtype.itemsize] * size * size
    return a.there & b.there & (jnp.abs(a.along.dot(b.along)) > ALONG) & across & straight


@fence
def _ends(a: AxisLine, b: AxisLine, first: Near, size: Scalar) -> tuple[Near, Near]:
    """The rows of both ends of the stretch where the lines are side by side."""
    centre, half = (b.middle - a.middle).dot(a.along), b.half * jnp.abs(a.along.dot(b.along))
    low, high = jnp.maximum(-a.half, centre - half), jnp.minimum(a.half, centre + half)

    def end(s: Scalar) -> Near:
        row = _row(a, b, s, first.normal)
        there = (high > low) & (row.gap < first.gap + SLACK * size)
        return only_where(there, row._replace(gap=jnp.maximum(row.gap, first.gap)))

    return end(low), end(high)


def _row(a: AxisLine, b: AxisLine, s: Scalar, normal: Vec3) -> Near:
    """The row at a position s on the line of A."""
    on_a = a.middle + a.along * s
    t = jnp.clip((on_a - b.middle).dot(b.along), -b.half, b.half)
    on_b = b.middle + b.along * t
    n = direction(on_a - on_b, normal)
    n = n * sign(n.dot(normal))  # deep inside a shape the lines may have passed each other
    row = Near((on_a - on_b).dot(n), n, on_a, on_b)
    return row.inflate(*(line.radius / jnp.sqrt(jnp.maximum(1 - n.dot(line.along) ** 2, 0.25)) for line in (a, b)))
