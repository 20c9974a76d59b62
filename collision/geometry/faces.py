"""The face of each shape in a direction, for manifolds; in the shape's own axes.

Departure: a cylinder's cap is the regular octagon in its rim, with one corner where the rim is lowest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ...engine.algebra.fence import compute_once
from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Scalar, Vec3
from .manifold import Face, pad_face
from .near import X_AXIS, Near, at, direction, sign, where
from .solid import Solid

CAP = 0.7  # cosine of the angle to its axis within which a cylinder shows its cap
CORNERS = 8  # of a cap


def meeting_faces(kind_a: str, a: Solid, kind_b: str, b: Solid, X: Transform, normal: Vec3) -> tuple[Face, Face]:
    """The faces of A and B towards each other, in A's frame."""
    n = compute_once(normal)
    return FACE[kind_a](a, -n), _in_frame_of(FACE[kind_b](b, compute_once(X.R.T @ n)), X)


def inflate_core(a: Solid, rows: tuple[Near, ...]) -> tuple[Near, ...]:
    """Return rows of the core of a sphere or capsule A as rows of the shape."""
    first, *others = rows
    return first.inflate(a.size.x, 0.0), *(row.rod(a.size.x, a.size.y) for row in others)


def _in_frame_of(face: Face, X: Transform) -> Face:
    """Return the face in the axes in which its shape has the pose X."""
    side = X.R @ face.side
    return Face(X.R @ face.point + X.p, side, face.bound + side.dot(X.p), X.R @ face.normal, face.flat)


def _stack(*vectors: Vec3) -> Vec3:
    """Stack vectors along a new leading axis."""
    return jax.tree.map(lambda *x: jnp.stack(jnp.broadcast_arrays(*x)), *vectors)


def _segment(ends: tuple[Vec3, Vec3], half_length: Scalar, n: Vec3) -> Face:
    none, one = jnp.zeros_like(n.z), jnp.ones_like(n.z)
    side = _stack(Vec3(none, none, one), Vec3(none, none, -one))
    bound = jnp.broadcast_to(half_length, side.x.shape)
    return Face(_stack(*ends), side, bound, n, jnp.zeros(jnp.shape(n.x), bool))


def _capsule(solid: Solid, n: Vec3) -> Face:
    none = jnp.zeros_like(n.z)
    return _segment((Vec3(none, none, solid.size.y), Vec3(none, none, -solid.size.y)), solid.size.y, n)


def _box(solid: Solid, n: Vec3) -> Face:
    h = solid.size
    ax, ay, az = jnp.abs(n.x), jnp.abs(n.y), jnp.abs(n.z)
    none, one = jnp.zeros_like(n.x), jnp.ones_like(n.x)
    x, y, z = Vec3(one, none, none), Vec3(none, one, none), Vec3(none, none, one)
    on_z, on_y = (az >= ax) & (az >= ay), ay >= ax
    # the face's normal w, and u, v in it so that u, v, w is right-handed
    u, hu = where(on_z, (x, h.x), where(on_y, (z, h.z), (y, h.y)))
    v, hv = where(on_z, (y, h.y), where(on_y, (x, h.x), (z, h.z)))
    w, hw = where(on_z, (z, h.z), where(on_y, (y, h.y), (x, h.x)))
    up = sign(w.dot(n))
    u, w = u * up, w * up
    p, q, c = u * hu, v * hv, w * hw
    points = _stack(c + p + q, c - p + q, c - p - q, c + p - q)
    return Face(
        points,
        _stack(u, -u, v, -v),
        jnp.stack(jnp.broadcast_arrays(hu, hu, hv, hv)),
        w,
        jnp.ones(jnp.shape(n.x), bool),
    )


def _cylinder(solid: Solid, n: Vec3) -> Face:
    r, h = solid.size.x, solid.size.y
    none = jnp.zeros_like(n.z)
    u = direction(Vec3(n.x, n.y, none), X_AXIS)
    end = sign(n.z)
    cap = jnp.abs(n.z) > CAP
    angle = (2 * np.pi * np.arange(CORNERS) / CORNERS).tolist()

    def around(rotation: float) -> Vec3:
        c, s = math.cos(rotation), math.sin(rotation)
        return Vec3(c * u.x - s * u.y, c * u.y + s * u.x, none)

    rim = _stack(*(around(a) * r + Vec3(0.0, 0.0, h * end) for a in angle))
    sides = _stack(*(around(a + np.pi / CORNERS) for a in angle))
    bound = jnp.broadcast_to(r * math.cos(np.pi / CORNERS), sides.x.shape)
    round_cap = Face(rim, sides, bound, Vec3(none, none, end), cap)
    line = _segment((u * r + Vec3(0.0, 0.0, h), u * r - Vec3(0.0, 0.0, h)), h, n)
    return where(cap, round_cap, pad_face(line, CORNERS))


def _hull(solid: Solid, n: Vec3) -> Face:
    hull = solid.hull
    index = jnp.argmax(hull.normal.dot(n), 0)
    normal = at(index, hull.normal)
    corners = at(index, jnp.moveaxis(hull.ring, 1, 0))  # (corners, *items)
    ring = jax.tree.map(
        lambda x: jnp.take_along_axis(jnp.broadcast_to(x, (len(x), *index.shape)), corners, 0), hull.vertex
    )
    edge = jax.tree.map(lambda x: jnp.roll(x, -1, 0) - x, ring)
    side = edge.cross(normal)
    length = jnp.sqrt(jnp.maximum(side.dot(side), jnp.finfo(normal.x.dtype).tiny))
    side = side / length
    return Face(ring, side, side.dot(ring), normal, jnp.ones(jnp.shape(normal.x), bool))


# the face whose normal is nearest to the direction n; ellipsoids and spheres have none
FACE: dict[str, Callable[[Solid, Vec3], Face]] = {
    "capsule": _capsule,
    "box": _box,
    "cylinder": _cylinder,
    "hull": _hull,
}
