"""Mass, centre of mass and inertia of shapes from their density (Holck 2005, appendix E), in numpy float64.

Closed forms for the primitives, about their centre and in their own axes; hulls and meshes by `meshes/surfaces.py`.
Planes and heightfields have no mass: they are static.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .mesh import load_mesh
from .meshes.hulls import convex_hull
from .meshes.surfaces import Surface, solid_moments
from .poses import Array, rotation_matrix
from .shapes import Capsule, ConvexHull, Cylinder, Mesh, Shape, Sphere

Moments = tuple[float, Array, Array]  # volume [m^3], centroid [m], inertia about it at density 1 [m^5]


@dataclass(frozen=True)
class MassProperties:
    """mass [kg]; com (3,) [m]; inertia (3, 3) about com [kg m^2], all in one frame."""

    mass: float
    com: Array
    inertia: Array

    def in_frame(self, position: Array, quaternion: Array) -> MassProperties:
        """Return the properties of the same body in the axes in which its own frame has this pose."""
        R = rotation_matrix(quaternion)
        return MassProperties(self.mass, position + R @ self.com, R @ self.inertia @ R.T)

    def with_mass(self, mass: float) -> MassProperties:
        """Return the same body with this mass [kg], by a change of its density."""
        return MassProperties(mass, self.com, self.inertia * (mass / self.mass))

    def inertia_about(self, point: Array) -> Array:
        """Inertia (3, 3) about another point of the frame [kg m^2] (parallel axes)."""
        r = self.com - point
        return self.inertia + self.mass * ((r @ r) * np.eye(3) - np.outer(r, r))


def combine(parts: Iterable[MassProperties]) -> MassProperties:
    """Combine rigidly joined parts in one frame."""
    parts = list(parts)
    mass = sum(part.mass for part in parts)
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass
    return MassProperties(mass, com, sum((part.inertia_about(com) for part in parts), np.zeros((3, 3))))


def shape_mass(shape: Shape, density: float = 1000.0, surface: Surface | None = None) -> MassProperties:
    """Mass properties of one shape in its own axes, without its pose.

    density: [kg/m^3].
    surface: that of a hull or mesh, if the caller has loaded it already.
    """
    if shape.kind not in _SOLIDS:
        raise ValueError(f"a {shape.kind} has no mass: it is static")
    volume, com, inertia = _SOLIDS[shape.kind](shape, surface)
    return MassProperties(density * volume, com, density * inertia)


def mass_in_body_frame(shape: Shape, density: float = 1000.0, surface: Surface | None = None) -> MassProperties:
    """Mass properties of one shape in the frame of the body that carries it."""
    pose = np.asarray(shape.position, float), np.asarray(shape.quaternion, float)
    return shape_mass(shape, density, surface).in_frame(*pose)


def _centered_solid(volume: float, *moments_per_volume: float) -> Moments:
    """A solid centred at its origin, from the diagonal of its inertia at mass 1."""
    return volume, np.zeros(3), volume * np.diag(moments_per_volume)


def _sphere(s: Sphere, _: Surface | None) -> Moments:
    m = 2 / 5 * s.radius**2
    return _centered_solid(4 / 3 * np.pi * s.radius**3, m, m, m)


def _box(s: Any, _: Surface | None) -> Moments:
    a, b, c = s.half_extents
    return _centered_solid(8 * a * b * c, (b * b + c * c) / 3, (a * a + c * c) / 3, (a * a + b * b) / 3)


def _ellipsoid(s: Any, _: Surface | None) -> Moments:
    a, b, c = s.radii
    return _centered_solid(4 / 3 * np.pi * a * b * c, (b * b + c * c) / 5, (a * a + c * c) / 5, (a * a + b * b) / 5)


def _cylinder(s: Cylinder, _: Surface | None) -> Moments:
    r, h = s.radius, s.half_length
    side = r * r / 4 + h * h / 3
    return _centered_solid(2 * np.pi * r * r * h, side, side, r * r / 2)


def _capsule(s: Capsule, _: Surface | None) -> Moments:
    r, h = s.radius, s.half_length
    tube, ball = 2 * np.pi * r * r * h, 4 / 3 * np.pi * r**3
    # each half ball has 83/320 r^2 about its own centre, which is h + 3/8 r from the middle
    side = tube * (r * r / 4 + h * h / 3) + ball * (2 / 5 * r * r + h * h + 3 / 4 * h * r)
    return tube + ball, np.zeros(3), np.diag([side, side, tube * r * r / 2 + ball * 2 / 5 * r * r])


def _hull(s: ConvexHull, surface: Surface | None) -> Moments:
    return solid_moments(surface or convex_hull(np.asarray(s.points, float)))


def _mesh(s: Mesh, surface: Surface | None) -> Moments:
    return solid_moments(surface or load_mesh(s.source, s.scale))


_SOLIDS: dict[str, Callable[[Any, Surface | None], Moments]] = {
    "sphere": _sphere,
    "box": _box,
    "ellipsoid": _ellipsoid,
    "cylinder": _cylinder,
    "capsule": _capsule,
    "hull": _hull,
    "mesh": _mesh,
}
