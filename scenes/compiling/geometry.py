"""Checked geometry of each kind of shape: its part of the model besides pose and material."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...collision.meshes.hulls import MAX_HULL_VERTICES, convex_hull, outlines
from ...collision.meshes.surfaces import MeshError, Surface
from ...collision.poses import Array
from ...collision.shapes import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, Heightfield, Plane, Sphere
from . import check

NO_POINTS = np.zeros((0, 3))


class Geometry(NamedTuple):
    """A row of the model's shape arrays, as Model and Topology describe them: in the shape's axes [m].

    size (3,).  points (n, 3): a hull's vertices, a mesh's triangles (three rows each), a heightfield's grid row by
    row.  faces: outlines of a hull's faces.  grid: rows and columns of a heightfield.
    kind: of the row; a Mesh becomes a hull, several hulls, or a mesh.
    surface: it decides the mass of hulls and meshes.
    """

    kind: str
    size: Array = np.zeros(3)
    points: Array = NO_POINTS
    faces: tuple[tuple[int, ...], ...] = ()
    grid: tuple[int, int] = (0, 0)
    surface: Surface | None = None


def _sphere(where: str, s: Sphere) -> Geometry:
    return Geometry("sphere", np.array([check.positive(where, "radius", s.radius, unit="m"), 0, 0]))


def _box(where: str, s: Box) -> Geometry:
    return Geometry("box", check.positive(where, "half_extents", s.half_extents, (3,), "m"))


def _round(where: str, s: Capsule | Cylinder) -> Geometry:
    radius = check.positive(where, "radius", s.radius, unit="m")
    return Geometry(s.kind, np.array([radius, check.positive(where, "half_length", s.half_length, unit="m"), 0]))


def _ellipsoid(where: str, s: Ellipsoid) -> Geometry:
    return Geometry("ellipsoid", check.positive(where, "radii", s.radii, (3,), "m"))


def _plane(where: str, s: Plane) -> Geometry:
    return Geometry("plane")


def _hull(where: str, s: ConvexHull) -> Geometry:
    points = check.numbers(where, "points", s.points, (-1, 3), "m")
    if len(points) < 4:
        check.reject(
            where, "points", s.points, f"there must be 4 or more, not {len(points)}: add points, or use a Capsule"
        )
    try:
        hull = convex_hull(points)
    except MeshError as error:
        check.reject(where, "points", s.points, str(error))
    n = len(hull[0])
    if n > MAX_HULL_VERTICES:
        fix = "simplify the points, or use a Mesh"
        check.reject(where, "points", f"{n} vertices", f"a hull has at most {MAX_HULL_VERTICES}: {fix}")
    return Geometry("hull", points=hull[0], faces=outlines(hull), surface=hull)


def _heightfield(where: str, s: Heightfield) -> Geometry:
    heights = check.numbers(where, "heights", s.heights, (-1, -1), "m")
    nx, ny = heights.shape
    if min(nx, ny) < 2:
        check.reject(
            where, "heights", s.heights, f"it must be 2 x 2 or more, not {nx} x {ny}: add rows, or use a plane"
        )
    cell = check.positive(where, "cell", s.cell, () if np.ndim(s.cell) == 0 else (2,), "m")
    dx, dy = np.broadcast_to(cell, 2)
    x, y = (np.arange(nx) - (nx - 1) / 2) * dx, (np.arange(ny) - (ny - 1) / 2) * dy
    X, Y = np.meshgrid(x, y, indexing="ij")
    points = np.stack([X, Y, heights], axis=-1).reshape(-1, 3)
    return Geometry("heightfield", np.array([dx, dy, nx]), points, grid=(nx, ny))


# readers by kind; meshes may be several rows, see mesh_parts.py
GEOMETRY: dict[str, Callable[[str, Any], Geometry]] = {
    "sphere": _sphere,
    "box": _box,
    "capsule": _round,
    "cylinder": _round,
    "ellipsoid": _ellipsoid,
    "plane": _plane,
    "hull": _hull,
    "heightfield": _heightfield,
}
