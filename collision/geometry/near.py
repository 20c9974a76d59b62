"""Near: one row of a kernel's result, and the small vector functions that all kernels share.

A kernel is called as `kernel(a, b, X)`: two Solids, and the pose X of B in A's frame. It returns, in A's frame,
a tuple of rows, the closest first; a missing row has gap inf. All components have one common shape
(n, *batch). The kernel sees only the relative pose, so its result does not depend on where in the world the pair is.

Departure from "no stacking in kernels": corners, candidates and directions are listed along a leading axis, because
a reduction over it follows, which runs over all pairs at once. Each list ends at a fence, where it would be
written out anyway.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ...engine.algebra.fence import compute_once
from ...engine.algebra.vec3 import Scalar, Vec3

T = TypeVar("T")


class Near(NamedTuple):
    """gap [m]; normal: unit, from B to A; a, b: the points on the two surfaces [m]; a - b = gap normal."""

    gap: Scalar
    normal: Vec3
    a: Vec3
    b: Vec3

    def inflate(self, radius_a: Scalar, radius_b: Scalar) -> Near:
        """Return the row of the shapes from that of cores with a radius about each [m]."""
        n = self.normal
        return Near(self.gap - radius_a - radius_b, n, self.a - n * radius_a, self.b + n * radius_b)

    def rod(self, radius: Scalar, half_length: Scalar) -> Near:
        """Return a further row of a capsule A along z: its point is where the line along the normal through the core's
        point leaves the capsule."""
        return self.inflate(to_the_end(radius, half_length, self.a.z, -self.normal.z), 0.0)

    def flip(self) -> Near:
        """Return the same row with A and B exchanged."""
        return Near(self.gap, -self.normal, self.b, self.a)


def to_the_end(radius: Scalar, half_length: Scalar, position: Scalar, slope: Scalar) -> Scalar:
    """Distance from a point on a capsule's axis to the surface [m] in a direction whose part along the axis is slope.

    The side is radius / cos(tilt) away, unless the direction leaves through the cap of an end first.
    """
    rise = jnp.abs(slope)
    on_side = radius / jnp.sqrt(jnp.maximum(1 - rise * rise, 0.25))
    inset = half_length - position * sign(slope)  # from the end in that direction
    through_cap = on_side * rise > inset
    across = jnp.where(through_cap, radius * radius - inset * inset * (1 - rise * rise), 1.0)
    return jnp.where(through_cap, inset * rise + jnp.sqrt(across), on_side)


def between(a: Vec3, b: Vec3, normal: Vec3) -> Near:
    """The row of two points on one line along the normal."""
    return Near((a - b).dot(normal), normal, a, b)


def only_where(there: ArrayLike, row: Near) -> Near:
    """Return the row where `there`, else none."""
    return row._replace(gap=jnp.where(there, row.gap, jnp.inf))


def where(condition: ArrayLike, yes: T, no: T) -> T:
    """`jnp.where` over pytrees, with one condition for all leaves."""
    return select(compute_once(condition), yes, no)


def select(condition: ArrayLike, yes: T, no: T) -> T:
    """`where` for a condition between numbers that `compute_once` has fixed."""
    return jax.tree.map(lambda y, n: jnp.where(condition, y, n), yes, no)


def length_and_direction(v: Vec3, fallback: Vec3) -> tuple[Scalar, Vec3]:
    """|v| and v/|v|; the fallback, a unit vector, where v vanishes."""
    square = v.dot(v)
    some = square > jnp.finfo(jnp.result_type(square)).tiny
    length = jnp.sqrt(jnp.where(some, square, 1.0))
    return jnp.where(some, length, 0.0), select(some, v / length, fallback)


def direction(v: Vec3, fallback: Vec3) -> Vec3:
    """v/|v|; the fallback, a unit vector, where v vanishes."""
    return length_and_direction(v, fallback)[1]


def sign(x: Scalar) -> Scalar:
    """-1 for negative numbers, else 1: never 0."""
    return jnp.where(x < 0, -1.0, 1.0).astype(jnp.result_type(x))


def perpendicular(v: Vec3) -> Vec3:
    """A unit vector perpendicular to a unit vector: the cross product with the axis that is farthest from it."""
    ax, ay, az = abs(v.x), abs(v.y), abs(v.z)
    none = jnp.zeros_like(v.x)
    x_is_least, y_is_least = (ax <= ay) & (ax <= az), ay <= az
    crossed = select(
        x_is_least, Vec3(none, v.z, -v.y), select(y_is_least, Vec3(-v.z, none, v.x), Vec3(v.y, -v.x, none))
    )
    return crossed / jnp.sqrt(crossed.dot(crossed))


def pick(score: Array, values: T) -> T:
    """The value with the largest score along the leading axis (the first of equals); NaN never wins.

    score: (k, ...); the leaves of values: (k, ...), broadcastable to it.
    """
    some = score > -jnp.inf
    best = jnp.argmax(jnp.where(some, score, -jnp.inf), 0)
    values = jax.tree.map(lambda x: jnp.broadcast_to(x, score.shape), values)
    return jax.tree.map(lambda x: jnp.where(some.any(0), x, 0), at(best, values))


def at(index: Array, values: T) -> T:
    """The values (k, [more,] *items) at an index (*items) of each item."""

    def one(x):
        more = x.shape[1 : x.ndim - index.ndim]
        x = jnp.broadcast_to(x, (x.shape[0], *more, *index.shape))
        return jnp.take_along_axis(x, index.reshape((1,) * (1 + len(more)) + index.shape), 0)[0]

    return jax.tree.map(one, values)


AXES = X_AXIS, Y_AXIS, Z_AXIS = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)
ORIGIN = Vec3(0.0, 0.0, 0.0)
