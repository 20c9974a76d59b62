"""Rays and convex shapes: where a line enters a shape and where it leaves it, one function per kind.

All are in the shape's own axes, along o + t d with |d| = 1. Round shapes are intersected about the line's point nearest
to their centre, so that nothing is lost to cancellation if the ray begins far away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.safe import safe_div, safe_sqrt
from ...engine.algebra.vec3 import Scalar, Vec3
from ..geometry.near import Z_AXIS, direction, pick, select, sign
from ..geometry.solid import Solid


class Span(NamedTuple):
    """The line's part inside the shape, from t = enter to t = leave [m] (an empty one: enter > leave), and the outward
    normals there."""

    enter: Scalar
    leave: Scalar
    at_enter: Vec3
    at_leave: Vec3


def common(a: Span, b: Span) -> Span:
    """The part inside both shapes."""
    late, early = a.enter >= b.enter, a.leave <= b.leave
    return Span(
        jnp.where(late, a.enter, b.enter), jnp.where(early, a.leave, b.leave),
        select(late, a.at_enter, b.at_enter), select(early, a.at_leave, b.at_leave),
    )  # fmt: skip


def either(a: Span, b: Span) -> Span:
    """The part inside either of two shapes whose union is convex."""
    only_a, only_b = b.enter > b.leave, a.enter > a.leave
    early = only_a | (~only_b & (a.enter <= b.enter))
    late = only_a | (~only_b & (a.leave >= b.leave))
    return Span(
        jnp.where(early, a.enter, b.enter), jnp.where(late, a.leave, b.leave),
        select(early, a.at_enter, b.at_enter), select(late, a.at_leave, b.at_leave),
    )  # fmt: skip


def _round(o: Vec3, d: Vec3, r: Scalar) -> tuple[Scalar, Scalar]:
    """Ends (enter, leave) of the part with |x| <= r, d of any length; a line along which x does not change is
    inside or outside."""
    square = d.dot(d)
    middle = safe_div(-o.dot(d), square)
    nearest = o + d * middle
    room = r * r - nearest.dot(nearest)
    half = jnp.where(square > 0, safe_sqrt(safe_div(room, square)), jnp.inf)
    hit = room >= 0
    return jnp.where(hit, middle - half, jnp.inf), jnp.where(hit, middle + half, -jnp.inf)


def _slab(o: Scalar, d: Scalar, half: Scalar) -> tuple[Scalar, Scalar]:
    """Ends (enter, leave) of the part with |x| <= half along one axis."""
    moves = d != 0
    a, b = (safe_div(side - o, d, moves) for side in (-half, half))
    within = jnp.abs(o) <= half
    enter = jnp.where(moves, jnp.minimum(a, b), jnp.where(within, -jnp.inf, jnp.inf))
    return enter, jnp.where(moves, jnp.maximum(a, b), jnp.where(within, jnp.inf, -jnp.inf))


def _ball(o: Vec3, d: Vec3, r: Scalar) -> Span:
    enter, leave = _round(o, d, r)
    at_enter, at_leave = (direction(o + d * jnp.where(jnp.isfinite(t), t, 0), Z_AXIS) for t in (enter, leave))
    return Span(enter, leave, at_enter, at_leave)


def _sphere(a: Solid, o: Vec3, d: Vec3) -> Span:
    return _ball(o, d, a.size.x)


def _ellipsoid(a: Solid, o: Vec3, d: Vec3) -> Span:
    r = a.size
    enter, leave = _round(Vec3(o.x / r.x, o.y / r.y, o.z / r.z), Vec3(d.x / r.x, d.y / r.y, d.z / r.z), 1.0)

    def normal(t: Scalar) -> Vec3:
        p = o + d * jnp.where(jnp.isfinite(t), t, 0)
        return direction(Vec3(p.x / r.x**2, p.y / r.y**2, p.z / r.z**2), Z_AXIS)

    return Span(enter, leave, normal(enter), normal(leave))


def _tube(o: Vec3, d: Vec3, r: Scalar, half: Scalar) -> Span:
    """A cylinder about z without ends, and the slab between them."""
    none = jnp.zeros_like(d.x)
    flat_o, flat_d = Vec3(o.x, o.y, none), Vec3(d.x, d.y, none)
    enter, leave = _round(flat_o, flat_d, r)
    sides = (direction(flat_o + flat_d * jnp.where(jnp.isfinite(t), t, 0), Z_AXIS) for t in (enter, leave))
    up = Vec3(none, none, sign(d.z))
    return common(Span(enter, leave, *sides), Span(*_slab(o.z, d.z, half), -up, up))


def _cylinder(a: Solid, o: Vec3, d: Vec3) -> Span:
    return _tube(o, d, a.size.x, a.size.y)


def _capsule(a: Solid, o: Vec3, d: Vec3) -> Span:
    r, half = a.size.x, a.size.y
    low, high = (_ball(o + Vec3(0.0, 0.0, end), d, r) for end in (half, -half))
    return either(_tube(o, d, r, half), either(low, high))


def _box(a: Solid, o: Vec3, d: Vec3) -> Span:
    none = jnp.zeros_like(d.x)

    def side(k: int) -> Span:
        out = Vec3(*(sign(d.xyz[k]) if j == k else none for j in range(3)))
        return Span(*_slab(o.xyz[k], d.xyz[k], a.size.xyz[k]), -out, out)

    return common(common(side(0), side(1)), side(2))


def _plane(a: Solid, o: Vec3, d: Vec3) -> Span:
    """The halfspace below z = 0."""
    moves = d.z != 0
    t = safe_div(-o.z, d.z, moves)
    within, inf = o.z <= 0, jnp.inf
    enter = jnp.where(d.z < 0, t, jnp.where(moves | within, -inf, inf))
    leave = jnp.where(d.z > 0, t, jnp.where(moves | within, inf, -inf))
    up = jax.tree.map(lambda x: jnp.full_like(t, x), Z_AXIS)
    return Span(enter, leave, up, up)


def _hull(a: Solid, o: Vec3, d: Vec3) -> Span:
    """The part inside all faces' planes (Cyrus & Beck, 1978)."""
    n, offset = a.hull.normal, a.hull.offset
    rate, room = n.dot(d), offset - n.dot(o)
    t = safe_div(room, rate, rate != 0)
    enter = jnp.where(rate < 0, t, jnp.where((rate == 0) & (room < 0), jnp.inf, -jnp.inf))
    leave = jnp.where(rate > 0, t, jnp.inf)
    return Span(jnp.max(enter, 0), jnp.min(leave, 0), pick(enter, n), pick(-leave, n))


Line = Callable[[Solid, Vec3, Vec3], Span]
SPANS: dict[str, Line] = {
    "plane": _plane,
    "sphere": _sphere,
    "capsule": _capsule,
    "box": _box,
    "cylinder": _cylinder,
    "ellipsoid": _ellipsoid,
    "hull": _hull,
}


def first_crossing(span: Span) -> tuple[Array, Vec3]:
    """The first t >= 0 at which a ray crosses the surface, inwards, or outwards if it begins inside; inf if none."""
    inside = span.enter < 0
    t = jnp.where(inside, span.leave, span.enter)
    there = (span.enter <= span.leave) & (t >= 0)
    return jnp.where(there, t, jnp.inf), select(inside, span.at_leave, span.at_enter)
