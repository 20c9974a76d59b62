"""Features: the curvature of a shape's surface at a contact, and whether the contact is on a corner or an edge.

To second order the height of a surface over the contact's tangent plane is x.K x / 2, with K the curvature: the shape
operator of a smooth surface (do Carmo, Differential Geometry of Curves and Surfaces, 3.3), of an implicit surface f = 0
the Hessian of f over the length of its gradient. Corners and edges have infinite curvature: they are marked, and K is
the finite part.

The contact's point decides whether it is on an edge. The detector finds it exactly to rounding or to 5e-6 of the size
(see `detect`), so a point counts as on an edge within NEAR of the shape's size and a gap band of it. While a contact
slides over this narrow strip, its acceleration is that of the edge. Heightfields and meshes count as flat everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from ..collision.geometry.growth import RIGID, growth, turning_by_growth
from ..collision.geometry.near import X_AXIS, direction, length_and_direction
from ..collision.geometry.solid import Hull
from ..collision.posed import Shapes, shapes_picked
from ..engine.algebra.fence import fence
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.algebra.spatial import Transform
from ..engine.algebra.vec3 import Mat3, Vec3
from ..engine.algebra.zero import ZERO
from .gather_scatter import gather

POINTLESS = frozenset({"plane", "heightfield", "mesh", "sphere"})  # their curvature is the same at every point


class Feature(NamedTuple):
    """The surface of a shape at the contact, components (C, *batch) in the contact frame.

    xx, xy, yy: curvature along (t1, t2), >= 0 if the shape is convex; on a ridge only along it [1/m].
    ex, ey: unit direction of a ridge.
    ridge: whether the contact is on an edge or a rim, along which it may migrate.
    corner: whether it is on a corner, where it stays.
    face: whether the normal is that of a flat face, with or without its edges and corners.
    """

    xx: Array
    xy: Array
    yy: Array
    ex: Array
    ey: Array
    ridge: Array
    corner: Array
    face: Array


class Spot(NamedTuple):
    """The contact point on a shape, in the shape's own axes, components (C, *batch).

    axes: the shape's axes as columns in the contact frame.
    point: on the surface [m].
    out: unit normal, outwards.
    size: as in `Model.shape_size`.
    near: distance that counts as on an edge, in addition to NEAR sizes [m].
    tilt: angle up to which a rim counts as flat [rad].
    hull: the `Hull`, or ZERO for other kinds.
    """

    axes: Mat3
    point: Vec3
    out: Vec3
    size: Vec3
    near: Array
    tilt: Array
    hull: Hull


def flat_angle(dtype: DTypeLike) -> float:
    """Return the angle [rad] below which surfaces count as parallel, here and in the detector."""
    return 2 * float(jnp.finfo(dtype).eps) ** (1 / 3)


def near_edge(dtype: DTypeLike) -> float:
    """Return NEAR, in sizes of the shape: 1e-5, in single precision 1e-3."""
    return max(1e-5, 1e4 * float(jnp.finfo(dtype).eps))


def features(
    shapes: Shapes, kinds: frozenset[str], shape: Array, frame: Mat3, point: Vec3, out: float, tilt: Array, there: Array
) -> Feature:
    """Return the features of the shapes of contacts (C, *batch). Those of inactive contacts are undefined.

    kinds: the kinds that occur among these shapes.
    shape: (C, *batch) indices of the shapes.
    frame: contact frames.
    point: on the shape's surface, in the world [m].
    out: -1 if the contact's normal points into the shape, else 1.
    tilt: angle up to which a rim counts as flat [rad].
    there: (C, *batch) active contacts.
    """
    model, topology = shapes.model, shapes.topology
    size = Vec3(*(_pick(x, shape) for x in Vec3.of(shapes.parameter("shape_size")).xyz))
    spot = Spot(ZERO, ZERO, ZERO, size, model.gap_band, tilt, ZERO)
    if kinds - POINTLESS:
        pose = jax.tree.map(lambda x: _pick(x, shape), shapes.pose)
        spot = _spot(frame, pose, point, out, spot)
    result, every = None, topology.shape_kinds
    for kind in sorted(kinds):
        here = jnp.asarray([k == kind for k in every])[shape]
        if kind == "hull":
            spot = spot._replace(hull=shapes_picked(shapes, kind, shape).solid.hull)
            corner = _on_corner(spot)
            known = (corner | ~here | ~there).all()
            one = jax.lax.cond(known, lambda at=spot, on=corner: _corner(at, on), lambda at=spot: STAGES["hull"](at))
        else:
            one = STAGES[kind](spot)
        result = one if result is None else jax.tree.map(lambda x, y, on=here: jnp.where(on, x, y), one, result)
    return result  # type: ignore[return-value]  # a topology with pairs has kinds


def surface_growth(
    shapes: Shapes, rates: Array, kinds: frozenset[str], shape: Array, frame: Mat3, point: Vec3, out: float
) -> tuple[Vec3, Vec3]:
    """Return the angular velocity and the velocity of shapes' surfaces at contacts as the shapes grow, contact frame.

    rates: (ns, *batch or ones, 3) rates of `Model.shape_size`. The rest is as in `features`.
    """
    size, rate = (Vec3(*(_pick(c, shape) for c in Vec3.of(x).xyz)) for x in (shapes.parameter("shape_size"), rates))
    pose = jax.tree.map(lambda x: _pick(x, shape), shapes.pose)
    axes, own, normal = frame @ pose.R, pose.R.T @ (point - pose.p), pose.R.T @ (frame.rows[2] * out)
    turning = moving = Vec3(*(jnp.zeros_like(c) for c in point.xyz))
    for kind in sorted(kinds - RIGID):
        here = jnp.asarray([k == kind for k in shapes.topology.shape_kinds])[shape]
        turned = normal.cross(turning_by_growth(kind, size, rate, normal))
        grown = growth(kind, size, rate, own, normal)
        turning, moving = (
            jax.tree.map(lambda x, y, on=here: x + jnp.where(on, y, 0), total, axes @ more)
            for total, more in ((turning, turned), (moving, grown))
        )
    return turning, moving


def _pick(x: Array, index: Array) -> Array:
    missing = index.ndim - x.ndim
    return gather(x.reshape(x.shape[0], *(1,) * missing, *x.shape[1:]) if x.ndim > 1 else x, index, 0)


@fence
def _spot(frame: Mat3, pose: Transform, point: Vec3, out: float, spot: Spot) -> Spot:
    axes = frame @ pose.R
    return spot._replace(axes=axes, point=pose.R.T @ (point - pose.p), out=axes.rows[2] * out)


# -- one kind each ------------------------------------------------------------------------------------


def _bent(
    k: Array, ex: Array, ey: Array, ridge: ArrayLike = False, corner: ArrayLike = False, face: ArrayLike = False
) -> Feature:
    """Return the feature with curvature k along direction e, none across it."""
    whole = [jnp.broadcast_to(jnp.asarray(x), k.shape) for x in (ridge, corner, face)]
    return Feature(k * ex * ex, k * ex * ey, k * ey * ey, ex, ey, *whole)


@fence
def _flat(at: Spot) -> Feature:
    none = jnp.zeros_like(at.size.x)
    return _bent(none, none + 1, none, face=True)


@fence
def _sphere(at: Spot) -> Feature:
    k = safe_div(1, at.size.x)
    none = jnp.zeros_like(k)
    return _bent(k, none + 1, none)._replace(yy=k)


@fence
def _capsule(at: Spot) -> Feature:
    """The side bends about the axis; the ends, to which the outer points of a lying capsule belong, are spheres."""
    r, h = at.size.x, at.size.y
    k = safe_div(1, r)
    around = _around(at, at.out)
    end = jnp.abs(at.point.z) >= h - _close(at, r + h)
    side = _bent(k, around[0], around[1])
    return side._replace(xx=jnp.where(end, k, side.xx), xy=jnp.where(end, 0, side.xy), yy=jnp.where(end, k, side.yy))


@fence
def _cylinder(at: Spot) -> Feature:
    """The rim and the side have the curvature 1/r times the outward component of the normal."""
    r, h = at.size.x, at.size.y
    close = _close(at, r + h)
    far, outwards = length_and_direction(Vec3(at.point.x, at.point.y, jnp.zeros_like(r)), X_AXIS)
    ex, ey = _around(at, at.point)
    lean = at.out.dot(outwards)
    side, end = far >= r - close, jnp.abs(at.point.z) >= h - close
    k = jnp.where(side & (lean > jnp.maximum(flat_angle(r.dtype), at.tilt)), safe_div(lean, r), 0)
    return _bent(k, ex, ey, side & end, face=_is_along(at.out.z))


@fence
def _ellipsoid(at: Spot) -> Feature:
    """f = sum (x_i/a_i)^2 - 1. The point where the normal is `out` has the gradient 2 out / sqrt(sum (a_i out_i)^2)."""
    k = Vec3(*(safe_div(1, x) for x in at.size.xyz))
    scaled = Vec3(*(a * o for a, o in zip(at.size.xyz, at.out.xyz, strict=True)))
    square = scaled.dot(scaled)
    depth = safe_sqrt(square, otherwise=1)  # from the centre to the tangent plane
    t1, t2 = (Vec3(*(x * y for x, y in zip(t.xyz, k.xyz, strict=True))) for t in at.axes.rows[:2])
    none = jnp.zeros_like(depth)
    return _bent(t1.dot(t1) * depth, none + 1, none)._replace(xy=t1.dot(t2) * depth, yy=t2.dot(t2) * depth)


@fence
def _box(at: Spot) -> Feature:
    close = _close(at, jnp.maximum(jnp.maximum(at.size.x, at.size.y), at.size.z))
    x, y, z = (jnp.abs(p) >= h - close for p, h in zip(at.point.xyz, at.size.xyz, strict=True))
    t1, t2, _ = at.axes.rows
    ex, ey = (jnp.where(~x, t.x, jnp.where(~y, t.y, t.z)) for t in (t1, t2))
    corner = x & y & z
    ridge = ((x & y) | (y & z) | (z & x)) & ~corner
    face = _is_along(at.out.x) | _is_along(at.out.y) | _is_along(at.out.z)
    return _bent(jnp.zeros_like(ex), *_unit(ex, ey), ridge, corner, face)


@fence
def _on_corner(at: Spot) -> Array:
    """Return whether the contact is on a corner of the hull."""
    apart = at.hull.vertex - at.point
    return (apart.dot(apart) <= _near_edges(at) ** 2).any(0)


def _near_edges(at: Spot) -> Array:
    vertex = at.hull.vertex
    return _close(at, jnp.max(jnp.maximum(jnp.maximum(abs(vertex.x), abs(vertex.y)), abs(vertex.z)), 0))


@fence
def _corner(at: Spot, corner: Array) -> Feature:
    none = jnp.zeros_like(at.size.x)
    return _bent(none, none + 1, none, False, corner)


@fence
def _hull(at: Spot) -> Feature:
    """On a corner, or on an edge between two different faces; padding repeats corners and edges, which does no harm.

    A corner's normal counts as no face's.
    """
    edges, close, corner = at.hull.edges, _near_edges(at), _on_corner(at)
    r, along = at.point - edges.start, edges.along
    off = r - along * jnp.clip(safe_div(r.dot(along), along.dot(along)), 0, 1)
    fold = edges.left.cross(edges.right)
    on = (off.dot(off) <= close * close) & (fold.dot(fold) > flat_angle(close.dtype) ** 2) & ~corner
    e = at.axes @ jax.tree.map(lambda x: jnp.where(on, x, 0).sum(0), along)
    face = on & (_is_along(edges.left.dot(at.out)) | _is_along(edges.right.dot(at.out)))
    return _bent(jnp.zeros_like(e.x), *_unit(e.x, e.y), on.any(0), corner, face.any(0))


STAGES: dict[str, Callable[[Spot], Feature]] = {
    "plane": _flat,
    "heightfield": _flat,
    "mesh": _flat,
    "sphere": _sphere,
    "capsule": _capsule,
    "cylinder": _cylinder,
    "ellipsoid": _ellipsoid,
    "box": _box,
    "hull": _hull,
}


def _around(at: Spot, v: Vec3) -> tuple[Array, Array]:
    """Return along (t1, t2) the unit direction around the shape's z axis, at a point off the axis in direction v."""
    off = direction(Vec3(v.x, v.y, jnp.zeros_like(v.x)), X_AXIS)
    e = at.axes @ Vec3(-off.y, off.x, off.z)
    return _unit(e.x, e.y)


def _is_along(cosine: Array) -> Array:
    """Return whether two unit vectors are parallel, by the cosine of the angle between them."""
    return jnp.abs(cosine) >= 1 - flat_angle(cosine.dtype) ** 2 / 2


def _unit(x: Array, y: Array) -> tuple[Array, Array]:
    e = direction(Vec3(x, y, jnp.zeros_like(x)), X_AXIS)
    return e.x, e.y


def _close(at: Spot, size: Array) -> Array:
    return near_edge(size.dtype) * size + at.near
