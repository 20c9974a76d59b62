"""Solid: shapes of one kind as kernels see them, in their own axes; support functions (`SUPPORT`).

A convex shape is a core and a radius about it: a sphere is a point, a capsule a segment with a radius; for all
others the radius is zero. SUPPORT gives the core's point farthest in a direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from ...engine.algebra.fence import compute_once
from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Scalar, Vec3, pytree
from ...engine.algebra.zero import ZERO
from .near import X_AXIS, direction, pick, sign


@pytree
class Edges:
    """The edges of a hull, (edges, *items).

    start: one end [m].
    along: end - start [m], parallel to left x right.
    left, right: outward normals of the faces on either side, seen from outside.
    """

    start: Vec3
    along: Vec3
    left: Vec3
    right: Vec3


@pytree
class Hull:
    """A convex polyhedron. vertex (vertices, *items) [m]; normal (faces, *items) outward; offset (faces, *items)
    of the face's plane along it [m]; ring (corners, faces, *items or ones): outlines of the faces, numbers of vertices,
    counter-clockwise seen from outside, the last corner repeated where a face has fewer; edges."""

    vertex: Vec3
    normal: Vec3
    offset: Scalar
    ring: Scalar
    edges: Edges


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HeightGrid:
    """The grid of a heightfield.

    height: (vertices, *items or ones), row by row [m].
    grid: numbers of rows and columns of the grid (static).
    window: numbers of rows and columns of the window of cells that is examined (static).
    """

    height: Scalar
    grid: tuple[int, int] = field(metadata={"static": True})
    window: tuple[int, int] = field(metadata={"static": True})


@pytree
class Solid:
    """size: three numbers by kind, as `Model.shape_size` has them [m]; hull and ground of those kinds, else ZERO."""

    size: Vec3
    hull: Any = ZERO
    ground: Any = ZERO


def radius(kind: str, solid: Solid) -> Scalar:
    """Radius of the rounding about the core [m]."""
    return solid.size.x if kind in ("sphere", "capsule") else jnp.zeros_like(solid.size.x)


def _point(solid: Solid, n: Vec3) -> Vec3:
    none = jnp.zeros_like(n.x)
    return Vec3(none, none, none)


def _segment(solid: Solid, n: Vec3) -> Vec3:
    none = jnp.zeros_like(n.x)
    return Vec3(none, none, solid.size.y * sign(n.z))


def _box(solid: Solid, n: Vec3) -> Vec3:
    h = solid.size
    return Vec3(h.x * sign(n.x), h.y * sign(n.y), h.z * sign(n.z))


def _cylinder(solid: Solid, n: Vec3) -> Vec3:
    rim = direction(Vec3(n.x, n.y, jnp.zeros_like(n.z)), X_AXIS)
    return Vec3(solid.size.x * rim.x, solid.size.x * rim.y, solid.size.y * sign(n.z))


def _ellipsoid(solid: Solid, n: Vec3) -> Vec3:
    r = solid.size
    m = direction(Vec3(r.x * n.x, r.y * n.y, r.z * n.z), X_AXIS)
    return Vec3(r.x * m.x, r.y * m.y, r.z * m.z)


def _hull(solid: Solid, n: Vec3) -> Vec3:
    vertex = solid.hull.vertex
    return pick(vertex.dot(n), vertex)


# point of the core farthest in the direction n (of any length), the shape's axes [m]
SUPPORT: dict[str, Callable[[Solid, Vec3], Vec3]] = {
    "sphere": _point,
    "capsule": _segment,
    "box": _box,
    "cylinder": _cylinder,
    "ellipsoid": _ellipsoid,
    "hull": _hull,
}


Support = Callable[[Vec3], tuple[Vec3, Vec3]]  # of n: A's point farthest along -n, B's along n


def supports(kind_a: str, a: Solid, kind_b: str, b: Solid, X: Transform) -> Support:
    """The support function of a pair, in A's frame."""

    def support(n: Vec3) -> tuple[Vec3, Vec3]:
        n = compute_once(n)
        return SUPPORT[kind_a](a, -n), X.R @ SUPPORT[kind_b](b, compute_once(X.R.T @ n)) + X.p

    return support


def _onto_cylinder(solid: Solid, p: Vec3) -> Vec3:
    r, h = solid.size.x, solid.size.y
    rim = direction(Vec3(p.x, p.y, jnp.zeros_like(p.z)), X_AXIS)
    rho = p.x * rim.x + p.y * rim.y
    on_cap = jnp.abs(p.z) - h > rho - r
    rho = jnp.where(on_cap, jnp.minimum(rho, r), r)
    return Vec3(rho * rim.x, rho * rim.y, jnp.where(on_cap, h * sign(p.z), jnp.clip(p.z, -h, h)))


def _onto_ellipsoid(solid: Solid, p: Vec3) -> Vec3:
    r = solid.size
    m = direction(Vec3(p.x / r.x, p.y / r.y, p.z / r.z), X_AXIS)
    return Vec3(r.x * m.x, r.y * m.y, r.z * m.z)


def _onto_hull(solid: Solid, p: Vec3) -> Vec3:
    over = solid.hull.normal.dot(p) - solid.hull.offset
    over, n = pick(over, (over, solid.hull.normal))
    return p - n * over


def _onto_box(solid: Solid, p: Vec3) -> Vec3:
    h = solid.size
    over = [jnp.abs(x) - half for x, half in ((p.x, h.x), (p.y, h.y), (p.z, h.z))]
    most = jnp.maximum(jnp.maximum(over[0], over[1]), over[2])
    sides = zip((p.x, p.y, p.z), (h.x, h.y, h.z), over, strict=True)
    return Vec3(*(jnp.where(o == most, half * sign(x), jnp.clip(x, -half, half)) for x, half, o in sides))


# the point of the core's surface for a point that lies on it except for rounding
ONTO: dict[str, Callable[[Solid, Vec3], Vec3]] = {
    "sphere": lambda solid, p: p,
    "capsule": lambda solid, p: p,
    "box": _onto_box,
    "cylinder": _onto_cylinder,
    "ellipsoid": _onto_ellipsoid,
    "hull": _onto_hull,
}
