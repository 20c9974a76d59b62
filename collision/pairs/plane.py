"""A plane (A, the halfspace z <= 0 of its axes) with all other shapes: the lowest points of B, in closed form."""

from __future__ import annotations

import jax.numpy as jnp

from ...engine.algebra.fence import compute_once
from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Scalar, Vec3
from ..geometry.manifold import spread
from ..geometry.near import X_AXIS, Near, direction, only_where, sign, where
from ..geometry.solid import SUPPORT, Solid

STEEP = 0.7  # cosine of the angle to the plane's normal above which a cylinder stands instead of lying


def _over(point: Vec3) -> Near:
    """The row of a point of B."""
    none, one = jnp.zeros_like(point.z), jnp.ones_like(point.z)
    return Near(point.z, Vec3(none, none, -one), Vec3(point.x, point.y, none), point)


def _down(X: Transform) -> Vec3:
    """The direction into the plane, in B's axes."""
    return compute_once(-X.R.rows[2])


def plane_sphere(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    p = X.p
    return (_over(Vec3(p.x, p.y, p.z - b.size.x)),)


def plane_capsule(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    """The lowest point; if the capsule lies, also the lowest point of the other end of its side."""
    down, r = _down(X), b.size.x
    h = b.size.y * sign(down.z)
    u = direction(Vec3(down.x, down.y, jnp.zeros_like(down.z)), X_AXIS)
    lowest, other = Vec3(r * down.x, r * down.y, r * down.z + h), Vec3(r * u.x, r * u.y, -h)
    lies = jnp.abs(down.z) < STEEP
    return _over(X.p + X.R @ lowest), only_where(lies, _over(X.p + X.R @ other))


def plane_box(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    """The corners of the face that looks down most, the lowest corner first."""
    down = _down(X)
    x, y, z = (axis * (h * sign(d)) for axis, h, d in zip(X.R.columns, b.size.xyz, down.xyz, strict=True))
    ax, ay, az = jnp.abs(down.x), jnp.abs(down.y), jnp.abs(down.z)
    z_faces, y_faces = (az >= ax) & (az >= ay), ay >= ax
    u = where(z_faces, x, where(y_faces, x, y))  # the face's two edges
    v = where(z_faces, y, z)
    w = where(z_faces, z, where(y_faces, y, x))
    return tuple(_over(X.p + w + i * u + j * v) for i in (1, -1) for j in (1, -1))


def plane_cylinder(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    """Standing: four points of the lower rim; lying: the lowest points of both rims."""
    down = _down(X)
    r, end = b.size.x, b.size.y * sign(down.z)
    none = jnp.zeros_like(down.z)
    u = direction(Vec3(down.x, down.y, none), X_AXIS)
    stands = jnp.abs(down.z) > STEEP

    def rim(x: Scalar, y: Scalar, z: Scalar) -> Near:
        return _over(X.p + X.R @ Vec3(r * x, r * y, z))

    across = where(stands, rim(-u.x, -u.y, end), rim(u.x, u.y, -end))
    sides = (only_where(stands, rim(x, y, end)) for x, y in ((-u.y, u.x), (u.y, -u.x)))
    return rim(u.x, u.y, end), across, *sides


def plane_ellipsoid(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    return (_over(X.p + X.R @ SUPPORT["ellipsoid"](b, _down(X))),)


def plane_hull(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    points = X.R @ b.hull.vertex + X.p
    normal = _over(X.p).normal
    return spread(_over(points), normal)
