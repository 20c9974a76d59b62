"""How a point of a shape's surface moves as the shape's size changes."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp

from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Vec3
from ...engine.algebra.zero import ZERO

RIGID = frozenset({"plane", "heightfield", "hull", "mesh"})  # planes have no size, the others have points instead


def growth(kind: str, size: Vec3, rates: Vec3, point: Vec3, out: Vec3) -> Vec3:
    """Return the velocity of a point of the surface, in the shape's axes, if its size changes. It is linear in rates.

    size: as in `Model.shape_size` [m].
    rates: its derivative.
    point: on the surface, in the shape's axes [m].
    out: unit normal there, outwards.

    Points of RIGID kinds stay.
    """
    return Vec3(ZERO, ZERO, ZERO) if kind in RIGID else GROWTH[kind](size, rates, point, out)


def _sphere(size: Vec3, rates: Vec3, point: Vec3, out: Vec3) -> Vec3:
    return out * rates.x


def _capsule(size: Vec3, rates: Vec3, point: Vec3, out: Vec3) -> Vec3:
    axis = point - out * size.x
    return out * rates.x + Vec3(ZERO, ZERO, axis.z * safe_div(rates.y, size.y))


def _cylinder(size: Vec3, rates: Vec3, point: Vec3, out: Vec3) -> Vec3:
    radial, along = safe_div(rates.x, size.x), safe_div(rates.y, size.y)
    return Vec3(point.x * radial, point.y * radial, point.z * along)


def _stretch(size: Vec3, rates: Vec3, point: Vec3, out: Vec3) -> Vec3:
    return Vec3(*(p * safe_div(d, s) for p, d, s in zip(point.xyz, rates.xyz, size.xyz, strict=True)))


GROWTH: dict[str, Callable[[Vec3, Vec3, Vec3, Vec3], Vec3]] = {
    "sphere": _sphere,
    "capsule": _capsule,
    "cylinder": _cylinder,
    "box": _stretch,
    "ellipsoid": _stretch,
}


def turning_by_growth(kind: str, size: Vec3, rates: Vec3, out: Vec3) -> Vec3:
    """Return the rate of the normal at such a point. Only ellipsoids turn theirs, as they grow in one direction."""
    if kind != "ellipsoid":
        none = jnp.zeros_like(out.x)
        return Vec3(none, none, none)
    less = Vec3(*(n * safe_div(d, s) for n, d, s in zip(out.xyz, rates.xyz, size.xyz, strict=True)))
    return out * out.dot(less) - less
