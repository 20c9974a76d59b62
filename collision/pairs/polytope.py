"""Convex hulls with spheres, capsules, boxes and hulls, each with or without a radius about its core.

Overlapping, the depth is exact: the separating-axis theorem over all faces of both and all pairs of edges that meet
on the Gauss map (Gregorius, The Separating Axis Test between Convex Polyhedra, GDC 2013). Apart, the distance is
GJK's, from the best of those axes; if a face's axis separates, edges are not tested. If GJK proves hulls to
be apart by more than a thousandth of their size, no axis is tested. Cores without volume have
no faces: a point has vertices only, a segment one edge, whose image on the Gauss map is a whole great circle.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ...engine.algebra.fence import fence
from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Scalar, Vec3
from ...engine.algebra.zero import ZERO, is_zero
from ..geometry.faces import inflate_core, meeting_faces
from ..geometry.gjk import farther, gjk, if_clear, roughness
from ..geometry.hull import cuboid, transform_hull
from ..geometry.lines import along_lines
from ..geometry.manifold import manifold
from ..geometry.near import X_AXIS, Near, at, direction, only_where, pick, select, sign, where
from ..geometry.solid import Edges, Hull, Solid, supports

STEPS = 14  # of GJK: 10 were enough for the worst of 20 000 pairs


def sphere_hull(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    centre = jax.tree.map(lambda x: jnp.zeros_like(x)[None], X.p)
    row = _exact("sphere", a, b, X, _best_face(centre, transform_hull(b.hull, X)))
    return (row.inflate(a.size.x, 0.0),)


def capsule_hull(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    hull = transform_hull(b.hull, X)
    none = jnp.zeros_like(X.p.x)
    ends = Vec3(*(jnp.stack([x, y]) for x, y in ((none, none), (none, none), (none + a.size.y, none - a.size.y))))
    row = _with_edges(_best_face(ends, hull), _axis(a.size.y + none), hull.edges)
    row = _exact("capsule", a, b, X, row)
    return inflate_core(a, _on_faces("capsule", a, b, X, row))


def box_hull(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    return _hulls("box", a, cuboid(a.size), b, X)


def hull_hull(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    return _hulls("hull", a, a.hull, b, X)


def _hulls(kind: str, a: Solid, mine: Hull, b: Solid, X: Transform) -> tuple[Near, ...]:
    between = direction(_middle(mine.vertex) - (X.R @ _middle(b.hull.vertex) + X.p), X_AXIS)
    far, clear = if_clear(supports(kind, a, "hull", b, X), between)

    def closely() -> tuple[Near, ...]:
        other = transform_hull(b.hull, X)
        face = _better(_best_face(mine.vertex, other), _best_face(other.vertex, mine).flip())
        row = _exact(kind, a, b, X, _with_edges(face, mine.edges, other.edges))
        return _on_faces(kind, a, b, X, row)

    none = only_where(False, far)
    rows = jax.lax.cond(clear.all(), lambda: (far, none, none, none), closely)
    return select(clear, far, rows[0]), *(only_where(~clear, row) for row in rows[1:])


@fence
def _middle(points: Vec3) -> Vec3:
    """The mean of points along the leading axis."""
    return jax.tree.map(lambda x: x.mean(0), points)


def _exact(kind: str, a: Solid, b: Solid, X: Transform, row: Near) -> Near:
    """The row of the best separating axis where the cores overlap, the distance's where they are apart."""
    support = supports(kind, a, "hull", b, X)
    return farther(row, gjk(support, row.normal, STEPS).row(), support)


def _on_faces(kind: str, a: Solid, b: Solid, X: Transform, row: Near) -> tuple[Near, ...]:
    faces = meeting_faces(kind, a, "hull", b, X, row.normal)
    return along_lines(kind, a, "hull", b, X, faces, manifold(row, *faces))


def _with_edges(face: Near, mine: Edges, other: Edges) -> Near:
    """The best of all axes if the best of the faces leaves open whether there is a gap, else that of the faces."""
    apart = face.gap > roughness(face)
    best = jax.lax.cond(apart.all(), lambda: face, lambda: _better(face, _best_edge(mine, other)))
    return where(apart, face, best)


def _better(face: Near, other: Near) -> Near:
    """The one with the larger gap; `other` must be larger by more than rounding, since faces make better contacts."""
    size = jnp.abs(face.a.x) + jnp.abs(face.a.y) + jnp.abs(face.a.z) + jnp.abs(face.gap)
    slack = 32 * jnp.finfo(size.dtype).eps * size
    return where(other.gap > face.gap + slack, other, face)


@fence
def _best_face(points: Vec3, hull: Hull) -> Near:
    """The face of B above which A's points (vertices, *items) are highest, or penetrate least."""
    normal, point = (
        jax.tree.map(lambda x, axis=axis: jnp.expand_dims(x, axis), v) for v, axis in ((hull.normal, 1), (points, 0))
    )
    lowest = jnp.min(normal.dot(point), 1) - hull.offset
    gap, n = pick(lowest, (lowest, hull.normal))
    a = pick(-points.dot(n), points)
    return Near(gap, n, a, a - n * gap)


def _axis(half_length: Scalar) -> Edges:
    """A capsule's axis: the one edge of a core without faces."""
    none = jnp.zeros_like(half_length)[None]
    start, along = Vec3(none, none, none - half_length), Vec3(none, none, none + 2 * half_length)
    return Edges(start, along, ZERO, ZERO)


def _best_edge(mine: Edges, other: Edges) -> Near:
    """The pair of edges whose face of the Minkowski difference is farthest out."""
    i = jnp.argmax(_farthest(mine, other), 0)
    edge = at(i, mine)
    gap, n, met = _partner(jax.tree.map(lambda x: x[None], edge), other)
    # where the two lines are nearest
    e, f, r = edge.along, met.along, met.start - edge.start
    ee, ff, ef = e.dot(e), f.dot(f), e.dot(f)
    sine2 = ee * ff - ef * ef
    sine2 = jnp.where(sine2 > 0, sine2, 1.0)
    s = jnp.clip((r.dot(e) * ff - ef * r.dot(f)) / sine2, 0.0, 1.0)
    t = jnp.clip((r.dot(e) * ef - ee * r.dot(f)) / sine2, 0.0, 1.0)
    return Near(gap, n, edge.start + e * s, met.start + f * t)


@fence
def _farthest(mine: Edges, other: Edges) -> Scalar:
    """The largest separation of each edge of A with any edge of B, (edges of A, *items)."""
    mine, other = (
        jax.tree.map(lambda x, axis=axis: jnp.expand_dims(x, axis), e) for e, axis in ((mine, 1), (other, 0))
    )
    return jnp.max(_separation(mine, other)[0], 1)


@fence
def _partner(edge: Edges, other: Edges) -> tuple[Scalar, Vec3, Edges]:
    """B's edge with the largest separation from one edge of A: the gap, the normal, and B's edge."""
    gap, n = _separation(edge, other)
    return jnp.max(gap, 0), *pick(gap, (n, other))


def _separation(a: Edges, b: Edges) -> tuple[Scalar, Vec3]:
    """Separation of two edges along the normal of both, which is from B to A; -inf where their arcs do not cross.

    The arcs: from `left` to `right` of A's edge, and of B's negated; along is their great circle's pole.
    """
    left, right = b.left.dot(a.along), b.right.dot(a.along)
    cross = left * right < 0
    if not is_zero(a.left):
        mine_left, mine_right = a.left.dot(b.along), a.right.dot(b.along)
        cross &= (mine_left * mine_right < 0) & (left * mine_right < 0)
    n = a.along.cross(b.along)
    nn = n.dot(n)
    skew = nn > 64 * jnp.finfo(nn.dtype).eps * a.along.dot(a.along) * b.along.dot(b.along)
    outward = sign(n.dot(b.left + b.right)) / jnp.sqrt(jnp.where(skew, nn, 1.0))
    n = n * outward
    return jnp.where(cross & skew, n.dot(a.start - b.start), -jnp.inf), n
