"""The distance of two separate convex cores: Gilbert, Johnson & Keerthi (1988), with a fixed number of iterations.

    M    the Minkowski difference A - B; its point nearest the origin is v = a - b
    w    M's point farthest against the direction n: the support
    n    unit direction from B to A: of v, or the normal of the triangle that holds v

The simplex is three points of M. A new support w replaces one of them: v lies then in one of the three triangles
or on one of the three edges at w, since w is nearer than all points of M that the simplex spans. So no tetrahedron is
ever tested, and no lane ever branches. Degenerate triangles only lose their inside. A lane whose v gets no shorter
keeps its simplex.

Departures: n is the triangle's normal if v is inside the triangle. Close to contact v is a difference of nearly
equal numbers, so the triangle gives the direction more exactly. Its sign is that of n0; the caller
guarantees that M lies on the far side of n0: n0.w > 0 for all w of M.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.fence import fence
from ...engine.algebra.vec3 import Scalar, Vec3
from .near import Near, between, direction, select, where
from .solid import Support

Weights = tuple[Scalar, Scalar, Scalar]  # of three points
LONGEST = 40  # steps from any direction; polytopes take five
CLEAR = 1e-3  # of the size: shapes farther apart will not touch soon, so their nearest points are enough


class Vertex(NamedTuple):
    """A point of M, from a point of A and one of B."""

    a: Vec3
    b: Vec3

    @property
    def w(self) -> Vec3:
        return self.a - self.b


class Simplex(NamedTuple):
    """Three points of M, the weights of v in them, v itself and the direction n."""

    p: tuple[Vertex, Vertex, Vertex]
    weight: Weights
    v: Vec3
    n: Vec3

    def row(self) -> Near:
        """The nearest points of A and B, which v connects."""
        a, b = (_mix(self.weight, points) for points in ([x.a for x in self.p], [x.b for x in self.p]))
        return between(a, b, self.n)


def gjk(support: Support, n0: Vec3, steps: int) -> Simplex:
    """Nearest points of two cores that a plane with normal n0 separates (n0 unit, from B to A)."""

    def step(_, simplex: Simplex) -> Simplex:
        return _closer(simplex, Vertex(*support(simplex.n)), n0)

    return jax.lax.fori_loop(0, steps, step, _first(support, n0))


def if_clear(support: Support, n0: Vec3) -> tuple[Near, Array]:
    """The row of cores that are clearly apart, from any direction n0; and whether (*items) they are. This is proved:
    two planes between them are as far from each other as the nearest points, to rounding."""
    first = _first(support, n0)
    no = first.v.x != first.v.x

    def step(carry: tuple[Array, Simplex, Array, Array]) -> tuple[Array, Simplex, Array, Array]:
        k, simplex, clear, near = carry
        new, row = Vertex(*support(simplex.n)), simplex.row()
        near |= ~clear & (row.gap <= CLEAR * extent(row))
        clear |= ~near & (row.gap - new.w.dot(simplex.n) <= roughness(row) / 4)
        return k + 1, select(clear | near, simplex, _closer(simplex, new, None)), clear, near

    def busy(carry: tuple[Array, Simplex, Array, Array]) -> Array:
        return (carry[0] < LONGEST) & ~(carry[2] | carry[3]).all()

    _, simplex, clear, _ = jax.lax.while_loop(busy, step, (jnp.int32(0), first, no, no))
    return simplex.row(), clear


def _first(support: Support, n0: Vec3) -> Simplex:
    """The simplex of one support point."""
    start = Vertex(*support(n0))
    one, none = jnp.ones_like(start.w.x), jnp.zeros_like(start.w.x)
    return Simplex((start, start, start), (one, none, none), start.w, direction(start.w, n0))


def _closer(old: Simplex, new: Vertex, n0: Vec3 | None) -> Simplex:
    """The simplex after one more support point."""
    p = old.p
    faces = [(p[0], p[1]), (p[0], p[2]), (p[1], p[2])]
    triangles = [_triangle(x.w, y.w, new.w) for x, y in faces]
    best, (x, y) = triangles[0], faces[0]
    for other, (x2, y2) in zip(triangles[1:], faces[1:], strict=True):
        best, x, y = select(other[0] < best[0], (other, x2, y2), (best, x, y))
    for z in p:
        best, x, y = select((on := _edge(z.w, new.w))[0] < best[0], (on, z, z), (best, x, y))
    return _keep_nearer(old, (x, y, new), best[1], n0)


@fence
def _keep_nearer(old: Simplex, p: tuple[Vertex, Vertex, Vertex], weight: Weights, n0: Vec3 | None) -> Simplex:
    v = _mix(weight, [x.w for x in p])
    across = (p[1].w - p[0].w).cross(p[2].w - p[0].w)
    across = across * jnp.where(across.dot(v if n0 is None else n0) < 0, -1.0, 1.0)
    inside = (weight[0] > 0) & (weight[1] > 0) & (weight[2] > 0)
    n = direction(select(inside, across, v), old.n)
    return select(v.dot(v) < old.v.dot(old.v), Simplex(p, weight, v, n), old)


def _mix(weight: Weights, points: Sequence[Vec3]) -> Vec3:
    return points[0] * weight[0] + points[1] * weight[1] + points[2] * weight[2]


@fence
def _triangle(x: Vec3, y: Vec3, w: Vec3) -> tuple[Scalar, Weights]:
    """Squared distance of the origin to the inside of a triangle (inf elsewhere), and its weights there."""
    e, f = x - w, y - w
    normal = e.cross(f)
    nn = normal.dot(normal)
    # weights are areas of the triangle with one corner moved to the foot of the origin
    wx, wy = f.cross(w).dot(normal), w.cross(e).dot(normal)
    tiny = jnp.finfo(nn.dtype).tiny
    safe = jnp.where(nn > tiny, nn, 1.0)
    wx, wy = wx / safe, wy / safe
    ww = 1 - wx - wy
    inside = (nn > tiny) & (wx >= 0) & (wy >= 0) & (ww >= 0)
    foot = x * wx + y * wy + w * ww
    return jnp.where(inside, foot.dot(foot), jnp.inf), (wx, wy, ww)


@fence
def _edge(x: Vec3, w: Vec3) -> tuple[Scalar, Weights]:
    """Squared distance of the origin to a segment, and its weights there (x, x, w)."""
    e = x - w
    ee = e.dot(e)
    tiny = jnp.finfo(ee.dtype).tiny
    t = jnp.clip(-w.dot(e) / jnp.where(ee > tiny, ee, 1.0), 0.0, 1.0)
    foot = w + e * t
    return foot.dot(foot), (t, jnp.zeros_like(t), 1 - t)


def farther(axis: Near, nearest: Near, support: Support) -> Near:
    """Return the row along the best separating axis if the shapes overlap, or if they are no farther apart along GJK's
    normal except for rounding, which changes the normal of shapes that nearly touch; else GJK's row from there."""
    rough = roughness(axis)
    a, b = support(nearest.normal)
    apart = (a - b).dot(nearest.normal)
    return where((axis.gap > rough) & (apart > axis.gap + rough / 10), nearest, axis)


def roughness(row: Near) -> Scalar:
    """Size of a gap [m] below which it may be rounding."""
    return 200 * jnp.finfo(row.gap.dtype).eps * extent(row)


def extent(row: Near) -> Scalar:
    """Distance of the points from the origin, as the sum of their coordinates' magnitudes [m]."""
    return sum((jnp.abs(x) for point in (row.a, row.b) for x in point.xyz), start=jnp.zeros_like(row.gap))
