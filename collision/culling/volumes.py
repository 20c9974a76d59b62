"""Bounding volumes, a ball and a box about one centre, and lower bounds of their distance.

For any unit n the supporting planes of two convex shapes are no nearer than those of their volumes, so the
separation of their volumes along n is a lower bound of the gap (`safe_step.py`). The first n is from centre to centre,
which is enough for most pairs; six more are the axes of both boxes (Gottschalk, Lin & Manocha, OBBTree, 1996, without
the products of edges). Along each n the volume ends at the nearer of the ends of its ball and its box.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ...engine.algebra.fence import fence
from ...engine.algebra.vec3 import Mat3, Scalar, Vec3, pytree
from ..geometry.near import Z_AXIS, Near, direction, sign


@pytree
class Volume:
    """center: in the world [m].  radius: of the ball [m].  half: of the box [m].  axes: of the box, its columns."""

    center: Vec3
    radius: Scalar
    half: Vec3
    axes: Mat3

    def extent(self, n: Vec3) -> Scalar:
        """Distance from the centre to the supporting plane along a unit vector [m]."""
        x, y, z = self.axes.columns
        box = jnp.abs(n.dot(x)) * self.half.x + jnp.abs(n.dot(y)) * self.half.y + jnp.abs(n.dot(z)) * self.half.z
        return jnp.minimum(self.radius, box)


@fence
def between_centres(a: Volume, b: Volume) -> Near:
    """A row whose gap is no larger than that of the shapes inside: along the line of centres, with points of the two
    supporting planes."""
    return _row(a, b, _along(a, b, direction(a.center - b.center, Z_AXIS)))


@fence
def separation(a: Volume, b: Volume) -> Near:
    """The same along the best of all seven directions."""
    best = _along(a, b, direction(a.center - b.center, Z_AXIS))
    for n in (*a.axes.columns, *b.axes.columns):
        other = _along(a, b, n)
        best = jax.tree.map(lambda x, y, better=other[0] > best[0]: jnp.where(better, x, y), other, best)
    return _row(a, b, best)


def _along(a: Volume, b: Volume, n: Vec3) -> tuple[Scalar, Vec3, Scalar, Scalar]:
    s, ends = n.dot(a.center - b.center), (a.extent(n), b.extent(n))
    return jnp.abs(s) - ends[0] - ends[1], n * sign(s), *ends


def _row(a: Volume, b: Volume, best: tuple[Scalar, Vec3, Scalar, Scalar]) -> Near:
    gap, n, end_a, end_b = best
    return Near(gap, n, a.center - n * end_a, b.center + n * end_b)


@fence
def from_plane(a: Volume, b: Volume) -> Near:
    """The same for a plane, the x and y axes of A, and a volume above it: along its normal."""
    up = a.axes.columns[2]
    height, end = up.dot(b.center - a.center), b.extent(up)
    lowest = b.center - up * end
    return Near(height - end, -up, lowest - up * (height - end), lowest)
