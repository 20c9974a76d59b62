"""Extents of shapes: bounding spheres and boxes, the inscribed ball, the reach about a point.

All of these follow from a model's parameters, so a compiled loop computes them once. Shapes are taken kind by kind,
and those made of points by their number of points; every function returns arrays over all shapes, in shape order.
Parameters may be batched. Zero sizes are allowed, and derivatives stay finite there (double `where`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.rotation import Quat
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.algebra.vec3 import Vec3
from ..engine.model import Model
from ..engine.rows import take
from ..engine.topology import Topology


class Ball(NamedTuple):
    """center (..., ns, 3) in the shape's axes and radius (..., ns) [m] of a ball."""

    center: Array
    radius: Array


class Reach(NamedTuple):
    """Lengths [m] about a point, (..., ns).

    full: no point of the shape is farther away.
    swing: a rotation about the point by a small angle moves the shape's surface by at most the angle times this length,
    by which angular speeds are multiplied. It is 0 for a centred sphere, however large it is.
    """

    full: Array
    swing: Array


def bounding_spheres(model: Model) -> Ball:
    """A ball around each shape, in its own axes; radius inf for planes; for heightfields it bounds the surface."""

    def of_points(p: Vec3) -> tuple[Vec3, Array]:
        center = Vec3(*((x.min(-1) + x.max(-1)) / 2 for x in (p.x, p.y, p.z)))
        return center, norm(p - Vec3(*(c[..., None] for c in (center.x, center.y, center.z)))).max(-1)

    radii: dict[str, Callable[[Array], Array]] = {
        "sphere": lambda s: s[..., 0],
        "plane": lambda s: jnp.full_like(s[..., 0], jnp.inf),
        "box": lambda s: norm(Vec3.of(s)),
        "capsule": lambda s: s[..., 0] + s[..., 1],
        "cylinder": lambda s: norm(Vec3(s[..., 0], s[..., 1], 0.0)),
        "ellipsoid": lambda s: s.max(-1),
    }
    topology, parts = model.topology, []
    for kind, shapes in _runs(topology):
        size = take(model.shape_size, shapes, -2)
        if kind in radii:
            radius = radii[kind](size)
            parts.append((shapes, jnp.stack([jnp.zeros_like(radius)] * 3 + [radius], -1)))
        else:
            center, radius = of_points(_points(model, shapes))
            parts.append((shapes, jnp.stack([center.x, center.y, center.z, radius], -1)))
    columns = _in_order(parts, model, 4)
    return Ball(columns[..., :3], columns[..., 3])


def bounding_halves(model: Model) -> Array:
    """Half the size (..., ns, 3) [m] of a box around each shape, in its own axes, about the centre of its bounding
    sphere; inf for planes."""
    halves: dict[str, Callable[[Array], Array]] = {
        "sphere": lambda s: s[..., jnp.array([0, 0, 0])],
        "plane": lambda s: jnp.full_like(s, jnp.inf),
        "box": lambda s: s,
        "capsule": lambda s: s[..., jnp.array([0, 0, 0])].at[..., 2].add(s[..., 1]),
        "cylinder": lambda s: s[..., jnp.array([0, 0, 1])],
        "ellipsoid": lambda s: s,
    }
    parts = []
    for kind, shapes in _runs(model.topology):
        if kind in halves:
            half = halves[kind](take(model.shape_size, shapes, -2))
        else:
            p = _points(model, shapes)
            half = jnp.stack([(x.max(-1) - x.min(-1)) / 2 for x in (p.x, p.y, p.z)], -1)
        parts.append((shapes, half))
    return _in_order(parts, model, 3)


def inradius(model: Model) -> Array:
    """Radius (..., ns) [m] of a ball inside each shape; inf for planes and heightfields, solid below; 0 for meshes,
    which are surfaces only. For hulls the ball is centred at the mean of the vertices: inside, but not the largest."""
    radii: dict[str, Callable[[Array], Array]] = {
        "sphere": lambda s: s[..., 0],
        "plane": lambda s: jnp.full_like(s[..., 0], jnp.inf),
        "heightfield": lambda s: jnp.full_like(s[..., 0], jnp.inf),
        "box": lambda s: s.min(-1),
        "capsule": lambda s: s[..., 0],
        "cylinder": lambda s: jnp.minimum(s[..., 0], s[..., 1]),
        "ellipsoid": lambda s: s.min(-1),
        "mesh": lambda s: jnp.zeros_like(s[..., 0]),
    }
    parts = []
    for kind, shapes in _runs(model.topology, by_faces=True):
        if kind in radii:
            radius = radii[kind](take(model.shape_size, shapes, -2))
        else:
            radius = _hull_inradius(model, shapes)
        parts.append((shapes, radius[..., None]))
    return _in_order(parts, model, 1)[..., 0]


def insides(model: Model) -> Array:
    """A point (..., ns, 3) inside each shape, in its own axes [m]: its origin, or the mean of its points."""
    parts = []
    for kind, shapes in _runs(model.topology):
        if kind in ("hull", "mesh"):
            p = _points(model, shapes)
            point = jnp.stack([x.mean(-1) for x in (p.x, p.y, p.z)], -1)
        else:
            point = jnp.zeros_like(take(model.shape_size, shapes, -2))
        parts.append((shapes, point))
    return _in_order(parts, model, 3)


def _hull_inradius(model: Model, shapes: Sequence[int]) -> Array:
    """Least distance from the mean of the vertices to a face; all hulls have the same number and size of faces."""
    faces = model.topology.shape_faces
    p = _points(model, shapes)
    if not faces or not faces[shapes[0]]:
        return jnp.zeros_like(p.x[..., 0])  # outlines unknown: a ball of radius 0 is inside
    widest = max(len(ring) for ring in faces[shapes[0]])
    # rings padded with their last vertex, which adds nothing to the area
    rings = np.array([[(*r, *(r[-1],) * (widest - len(r))) for r in faces[i]] for i in shapes])
    x, y, z = (
        jnp.take_along_axis(c, jnp.asarray(rings.reshape(len(shapes), -1))[(None,) * (c.ndim - 2)], -1)
        .reshape(*c.shape[:-1], *rings.shape[1:])
        for c in (p.x, p.y, p.z)
    )  # fmt: skip
    mean = Vec3(*(c.mean(-1)[..., None, None] for c in (p.x, p.y, p.z)))
    ring = Vec3(x, y, z) - mean
    spoke = ring - Vec3(*(c[..., :1] for c in (ring.x, ring.y, ring.z)))
    fan = _part(spoke, slice(1, -1)).cross(_part(spoke, slice(2, None)))
    normal = Vec3(*(c.sum(-1, keepdims=True) for c in (fan.x, fan.y, fan.z)))
    area = norm(normal)
    height = safe_div(ring.dot(normal), area, otherwise=jnp.inf)  # a face without area bounds nothing
    return jnp.maximum(height.min((-1, -2)), 0.0)


def reach(model: Model, about: Array) -> Reach:
    """Reach of each shape about a point of its link, about (..., ns, 3) [m] in the link's frame.

    The swing is a Lipschitz constant of the support function h(n) over unit directions n, so it bounds how fast a
    rotation moves any supporting plane, and so the Hausdorff distance to the original shape. With c the farthest point
    along n it is the length of c - (c.n) n, at most sqrt(full^2 - depth^2) with a ball of radius depth about the
    point inside the shape; balls added all round (sphere, capsule) do not count; a cylinder about its
    centre has max(r, l), an ellipsoid max - min of its radii (h' = (b^2 - a^2) s c/h at its largest).
    """
    parts = []
    offset = jnp.asarray(about) - model.shape_position
    x_S = Quat.of_array(model.shape_quaternion).conjugate().rotate(Vec3.of(offset))
    for kind, shapes in _runs(model.topology):
        x = Vec3(*(take(jnp.abs(c) if kind in _MIRRORED else c, shapes, -1) for c in (x_S.x, x_S.y, x_S.z)))
        size = take(model.shape_size, shapes, -2)
        if kind in ("hull", "mesh"):
            apart = _points(model, shapes) - Vec3(*(c[..., None] for c in (x.x, x.y, x.z)))
            full = swing = norm(apart).max(-1)
        elif kind in ("plane", "heightfield"):  # these are unbounded
            full = swing = jnp.full_like(x.x, jnp.inf)
        else:
            full, swing = _REACHES[kind](x, size)
        parts.append((shapes, jnp.stack(jnp.broadcast_arrays(full, swing), -1)))
    columns = _in_order(parts, model, 2)
    return Reach(columns[..., 0], columns[..., 1])


def _sphere_reach(x: Vec3, s: Array) -> tuple[Array, Array]:
    away = norm(x)
    return away + s[..., 0], away


def _box_reach(x: Vec3, s: Array) -> tuple[Array, Array]:
    h = Vec3.of(s)
    full = norm(x + h)
    room = h - x
    depth = jnp.maximum(jnp.minimum(jnp.minimum(room.x, room.y), room.z), 0.0)
    return full, safe_sqrt(full**2 - depth**2)


def _capsule_reach(x: Vec3, s: Array) -> tuple[Array, Array]:
    end = norm(Vec3(x.x, x.y, x.z + s[..., 1]))
    return end + s[..., 0], end


def _cylinder_reach(x: Vec3, s: Array) -> tuple[Array, Array]:
    rim = norm(Vec3(x.x, x.y, 0.0)) + s[..., 0]
    full = norm(Vec3(rim, x.z + s[..., 1], 0.0))
    return full, jnp.minimum(full, norm(x) + jnp.maximum(s[..., 0], s[..., 1]))


def _ellipsoid_reach(x: Vec3, s: Array) -> tuple[Array, Array]:
    largest = s.max(-1)
    full = jnp.minimum(norm(x) + largest, norm(x + Vec3.of(s)))
    return full, jnp.minimum(full, norm(x) + largest - s.min(-1))


# kinds with three planes of symmetry: x may be replaced by |x|, so that the farthest point is the one beyond
_REACHES: dict[str, Callable[[Vec3, Array], tuple[Array, Array]]] = {
    "sphere": _sphere_reach,
    "box": _box_reach,
    "capsule": _capsule_reach,
    "cylinder": _cylinder_reach,
    "ellipsoid": _ellipsoid_reach,
}
_MIRRORED = frozenset(_REACHES)


def bounding_boxes(model: Model, positions: Array, rotations: Array) -> tuple[Array, Array]:
    """Boxes (lo, hi), each (..., ns, 3) [m], along the world's axes around posed shapes, as small as possible.

    positions (..., ns, 3) [m] and rotations (..., ns, 3, 3) of the shapes' axes (not the links') in the world.
    Planes and heightfields, which are solid below, are unbounded on the sides where they are infinite.
    """
    parts = []
    for kind, shapes in _runs(model.topology):
        p, R = take(positions, shapes, -2), take(rotations, shapes, -3)
        row = Vec3(R[..., 0], R[..., 1], R[..., 2])  # (..., n, 3): each world axis in the shape's axes
        size = take(model.shape_size, shapes, -2)[..., None, :]
        if kind in _EXTENTS:
            half = _EXTENTS[kind](row, size)
            lo, hi = p - half, p + half
        elif kind == "plane":
            level = (row.x == 0) & (row.y == 0)
            lo = jnp.where(level & (row.z < 0), p, -jnp.inf)
            hi = jnp.where(level & (row.z > 0), p, jnp.inf)
        else:
            points = _points(model, shapes)
            along = [Vec3(*(c[..., k, None] for c in (row.x, row.y, row.z))).dot(points) for k in range(3)]
            lo = p + jnp.stack([a.min(-1) for a in along], -1)
            hi = p + jnp.stack([a.max(-1) for a in along], -1)
            if kind == "heightfield":
                lo, hi = jnp.where(row.z > 0, -jnp.inf, lo), jnp.where(row.z < 0, jnp.inf, hi)
        parts.append((shapes, jnp.concatenate(jnp.broadcast_arrays(lo, hi), -1)))
    columns = _in_order(parts, model, 6)
    return columns[..., :3], columns[..., 3:]


# half the extent along a unit direction d, in the shape's axes: the support function of a shape that is symmetric
# about its origin
_EXTENTS: dict[str, Callable[[Vec3, Array], Array]] = {
    "sphere": lambda d, s: jnp.broadcast_to(s[..., 0], jnp.broadcast_shapes(s[..., 0].shape, d.x.shape)),
    "box": lambda d, s: s[..., 0] * abs(d.x) + s[..., 1] * abs(d.y) + s[..., 2] * abs(d.z),
    "capsule": lambda d, s: s[..., 0] + s[..., 1] * abs(d.z),
    "cylinder": lambda d, s: s[..., 0] * safe_sqrt(d.x**2 + d.y**2) + s[..., 1] * abs(d.z),
    "ellipsoid": lambda d, s: norm(Vec3(s[..., 0] * d.x, s[..., 1] * d.y, s[..., 2] * d.z)),
}


def norm(v: Vec3) -> Array:
    """Length of a vector, with derivative 0 at zero."""
    return safe_sqrt(v.dot(v))


def _part(v: Vec3, where: slice) -> Vec3:
    return Vec3(v.x[..., where], v.y[..., where], v.z[..., where])


def _runs(topology: Topology, by_faces: bool = False) -> list[tuple[str, list[int]]]:
    """Shapes of equal kind and number of points, or number and size of faces: (kind, shapes)."""
    runs: dict[tuple[str, *tuple[int, ...]], list[int]] = {}
    for i, (kind, (start, stop)) in enumerate(zip(topology.shape_kinds, topology.shape_points, strict=True)):
        key = (kind, stop - start)
        if by_faces and kind == "hull" and topology.shape_faces:
            faces = topology.shape_faces[i]
            key = (*key, len(faces), max(map(len, faces), default=0))
        runs.setdefault(key, []).append(i)
    return [(key[0], shapes) for key, shapes in runs.items()]


def _points(model: Model, shapes: Sequence[int]) -> Vec3:
    """Points of shapes that have equal numbers of them, components (..., n, m)."""
    spans = [model.topology.shape_points[i] for i in shapes]
    count = spans[0][1] - spans[0][0]
    if all(stop == start for (_, stop), (start, _) in pairwise(spans)):  # a mesh may have millions
        picked = jax.lax.slice_in_dim(model.points, spans[0][0], spans[-1][1], axis=model.points.ndim - 2)
    else:
        picked = take(model.points, [k for span in spans for k in range(*span)], -2)
    return Vec3.of(picked.reshape(*picked.shape[:-2], len(shapes), count, 3))


def _in_order(parts: list[tuple[list[int], Array]], model: Model, width: int) -> Array:
    """Array (..., ns, width) of all shapes, from (shapes, (..., n, width)) parts."""
    if not parts:
        return jnp.zeros((0, width), model.shape_size.dtype)
    batch = jnp.broadcast_shapes(*(x.shape[:-2] for _, x in parts))
    columns = jnp.concatenate([jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for _, x in parts], -2)
    order = np.argsort([i for shapes, _ in parts for i in shapes]).tolist()
    return take(columns, order, -2)
