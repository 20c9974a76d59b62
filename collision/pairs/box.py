"""Boxes with spheres, capsules and boxes.

A sphere's centre in or around a box is a closed form. A capsule's core is a box without width, so both other
pairs are boxes with a radius: apart, their distance is GJK's; overlapping, the depth is exact by the fifteen
separating axes (Gottschalk, Lin & Manocha, OBBTree, 1996): the faces of both, and the products of their edges.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.fence import compute_once, fence
from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Scalar, Vec3
from ..geometry.faces import inflate_core, meeting_faces
from ..geometry.gjk import farther, gjk
from ..geometry.lines import along_lines
from ..geometry.manifold import manifold
from ..geometry.near import AXES, ORIGIN, Near, between, length_and_direction, sign, where
from ..geometry.solid import Solid, supports

STEPS = 11  # of GJK: 8 were enough for the worst of 20 000 pairs


def sphere_box(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    """Outside, the box's nearest point is the sphere's centre clamped to the box; inside, it is on the nearest face."""
    c, h = compute_once(X.R.T @ -X.p), b.size
    s = Vec3(sign(c.x), sign(c.y), sign(c.z))
    q = Vec3(s.x * c.x - h.x, s.y * c.y - h.y, s.z * c.z - h.z)
    x_face, y_face = (q.x >= q.y) & (q.x >= q.z), q.y >= q.z
    one, none = jnp.ones_like(q.x), jnp.zeros_like(q.x)
    face = where(x_face, Vec3(one, none, none), where(y_face, Vec3(none, one, none), Vec3(none, none, one)))
    beyond = Vec3(*(jnp.maximum(x, 0.0) for x in (q.x, q.y, q.z)))
    apart, out = length_and_direction(beyond, face)
    distance = jnp.where(apart > 0, apart, q.dot(face))
    normal = X.R @ Vec3(s.x * out.x, s.y * out.y, s.z * out.z)
    return (between(ORIGIN, -normal * distance, normal).inflate(a.size.x, 0.0),)


def capsule_box(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    none = jnp.zeros_like(a.size.x)
    return inflate_core(a, _boxes("capsule", a, Vec3(none, none, a.size.y), b, X))


def box_box(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    return _boxes("box", a, a.size, b, X)


def _boxes(kind: str, a: Solid, half: Vec3, b: Solid, X: Transform) -> tuple[Near, ...]:
    overlapping = separating_axes(half, b.size, X)
    support = supports(kind, a, "box", b, X)
    row = farther(overlapping, gjk(support, overlapping.normal, STEPS).row(), support)
    faces = meeting_faces(kind, a, "box", b, X, row.normal)
    return along_lines(kind, a, "box", b, X, faces, manifold(row, *faces))


def separating_axes(h: Vec3, k: Vec3, X: Transform) -> Near:
    """The axis on which two boxes are farthest apart or overlap least, and two points that touch along it.

    h, k: half extents of A and B [m].
    X: pose of B.
    """
    return _points(_best_axis(h, k, X), h, k, X)


@fence
def _best_axis(h: Vec3, k: Vec3, X: Transform) -> Array:
    """Index of the best axis: faces of A 0-2, of B 3-5, products of edges 6 + 3 i + j."""
    R, p = X.R, X.p

    def along(n: Vec3) -> Scalar:
        a = jnp.abs(n.x) * h.x + jnp.abs(n.y) * h.y + jnp.abs(n.z) * h.z
        b = sum(jnp.abs(n.dot(axis)) * half for axis, half in zip(R.columns, k.xyz, strict=True))
        return jnp.abs(n.dot(p)) - a - b

    eps = jnp.finfo(p.x.dtype).eps
    # an edge must be better than a face by more than rounding: a face has the better contact points
    slack = 16 * eps * (h.x + h.y + h.z + k.x + k.y + k.z)
    gaps = [along(axis) for axis in (*AXES, *R.columns)]
    for x in AXES:
        for y in R.columns:
            n = x.cross(y)
            square = n.dot(n)
            skew = square > 64 * eps
            gaps.append(jnp.where(skew, along(n) / jnp.sqrt(jnp.where(skew, square, 1.0)) - slack, -jnp.inf))
    best, number = gaps[0], jnp.zeros(jnp.shape(gaps[0]), jnp.int32)
    for m, gap in enumerate(gaps[1:], 1):
        better = gap > best
        best, number = jnp.where(better, gap, best), jnp.where(better, m, number)
    return number


@fence
def _points(number: Array, h: Vec3, k: Vec3, X: Transform) -> Near:
    R, p = X.R, X.p
    edges, face_a = number >= 6, number < 3
    i = jnp.where(edges, (number - 6) // 3, number % 3)
    j = jnp.where(edges, (number - 6) % 3, number % 3)
    e = where(i == 0, AXES[0], where(i == 1, AXES[1], AXES[2]))  # A's axis, and B's
    x, y, z = R.columns
    f = where(j == 0, x, where(j == 1, y, z))
    n = where(edges, e.cross(f), where(face_a, e, f))
    n = n / jnp.sqrt(n.dot(n))
    n = compute_once(n * -sign(compute_once(n.dot(p))))
    # the boxes' farthest points along n; on an edge, its middle
    a = Vec3(*(-half * sign(c) * (1 - on * edges) for half, c, on in zip(h.xyz, n.xyz, e.xyz, strict=True)))
    m = compute_once(R.T @ n)
    mine = [jnp.where(edges & (j == c), 0.0, 1.0) for c in range(3)]
    b = R @ Vec3(*(half * sign(c) * on for half, c, on in zip(k.xyz, m.xyz, mine, strict=True))) + p
    gap = (a - b).dot(n)
    # faces: the other's farthest point and its foot; edges: where the lines are nearest
    r = b - a
    cosine = e.dot(f)
    sine2 = jnp.where(edges, 1 - cosine * cosine, 1.0)
    s = (r.dot(e) - cosine * r.dot(f)) / sine2
    t = s * cosine - r.dot(f)
    on_a = where(edges, a + e * s, where(face_a, b + n * gap, a))
    on_b = where(edges, b + f * t, where(face_a, b, a - n * gap))
    return Near(gap, n, on_a, on_b)
