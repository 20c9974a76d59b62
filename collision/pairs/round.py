"""Spheres and capsules with one another, and spheres with cylinders: points and segments with a radius, in closed
form."""

from __future__ import annotations

import jax.numpy as jnp

from ...engine.algebra.fence import compute_once
from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Scalar, Vec3
from ..geometry.lines import ALONG, SLACK
from ..geometry.near import (
    ORIGIN,
    X_AXIS,
    Z_AXIS,
    Near,
    between,
    direction,
    length_and_direction,
    only_where,
    perpendicular,
    sign,
    to_the_end,
    where,
)
from ..geometry.solid import Solid


def sphere_sphere(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    normal = direction(-X.p, Z_AXIS)
    return (between(ORIGIN, X.p, normal).inflate(a.size.x, b.size.x),)


def sphere_capsule(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    axis = X.R.columns[2]
    s = jnp.clip(-X.p.dot(axis), -b.size.y, b.size.y)
    core = X.p + axis * s
    normal = direction(-core, perpendicular(axis))
    return (between(ORIGIN, core, normal).inflate(a.size.x, b.size.x),)


def sphere_cylinder(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    """A cylinder's nearest point is the sphere's centre clamped to it; for one inside, it is on the side or a cap."""
    c = compute_once(X.R.T @ -X.p)
    none, one = jnp.zeros_like(c.z), jnp.ones_like(c.z)
    across, radial = length_and_direction(Vec3(c.x, c.y, none), X_AXIS)
    up = sign(c.z)
    side, cap = across - b.size.x, up * c.z - b.size.y  # distances beyond the two surfaces
    nearer = where(side >= cap, Vec3(one, none, none), Vec3(none, none, one))
    apart, out = length_and_direction(Vec3(jnp.maximum(side, 0.0), none, jnp.maximum(cap, 0.0)), nearer)
    distance = jnp.where(apart > 0, apart, jnp.maximum(side, cap))
    normal = X.R @ Vec3(radial.x * out.x, radial.y * out.x, up * out.z)
    return (between(ORIGIN, -normal * distance, normal).inflate(a.size.x, 0.0),)


def capsule_capsule(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    axis = X.R.columns[2]
    first = _row(X.p, axis, nearest_on_segments(X.p, axis, a.size.y, b.size.y)).inflate(a.size.x, b.size.x)
    # parallel capsules also touch at the ends of their common stretch
    lo, hi = _overlap(X.p, axis, a.size.y, b.size.y)
    s_first = first.a.z
    s = jnp.where(jnp.abs(lo - s_first) > jnp.abs(hi - s_first), lo, hi)
    t = jnp.clip((s * axis.z) - X.p.dot(axis), -b.size.y, b.size.y)
    core = _row(X.p, axis, (s, t))
    n = core.normal
    second = core.inflate(to_the_end(a.size.x, a.size.y, s, -n.z), to_the_end(b.size.x, b.size.y, t, n.dot(axis)))
    reach = a.size.x + b.size.x
    rough = 64 * jnp.finfo(reach.dtype).eps * (reach + jnp.abs(first.gap))
    # if the axes meet, the second point may be the deeper one, along its own normal: then it is meaningless
    two = (jnp.abs(axis.z) > ALONG) & (second.gap < first.gap + SLACK * reach) & (second.gap > first.gap - rough)
    two &= hi - lo > 0
    return first, only_where(two, second)


def _row(p: Vec3, axis: Vec3, positions: tuple[Scalar, Scalar]) -> Near:
    """The row of two positions on the axes."""
    s, t = compute_once(positions)
    on_a, on_b = Vec3(jnp.zeros_like(s), jnp.zeros_like(s), s), p + axis * t
    # where the axes meet, they come apart soonest perpendicular to both
    across = direction(Vec3(-axis.y, axis.x, jnp.zeros_like(axis.x)), perpendicular(axis))
    normal = direction(on_a - on_b, across)
    return between(on_a, on_b, normal)


def nearest_on_segments(p: Vec3, axis: Vec3, la: Scalar, lb: Scalar) -> tuple[Scalar, Scalar]:
    """Positions s on (0, 0, s), |s| <= la, and t on p + t axis, |t| <= lb, that are nearest each other.

    Ericson, Real-Time Collision Detection (2005), 5.1.9: the lines' nearest s, clamped; then t, clamped; then
    s again. If the lines are parallel any s is as good as another.
    """
    along = axis.z
    down = p.dot(axis)
    denominator = 1 - along * along
    skew = denominator > jnp.finfo(jnp.result_type(along)).eps
    s = jnp.where(skew, (p.z - along * down) / jnp.where(skew, denominator, 1.0), p.z - along * down)
    s = jnp.clip(s, -la, la)
    t = jnp.clip(s * along - down, -lb, lb)
    s = jnp.clip(p.z + t * along, -la, la)
    return s, t


def _overlap(p: Vec3, axis: Vec3, la: Scalar, lb: Scalar) -> tuple[Scalar, Scalar]:
    """The stretch of A's axis beside B's segment."""
    half = lb * jnp.abs(axis.z)
    return jnp.maximum(-la, p.z - half), jnp.minimum(la, p.z + half)
