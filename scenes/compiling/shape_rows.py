"""Checked geometry: one row of the model's shape arrays for each shape, and its mass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...collision.mass import MassProperties, shape_mass
from ...collision.mesh import MeshError, Surface, convex_hull, is_closed, load_mesh
from ...collision.poses import Array, quaternion_product, rotation_from_z, rotation_matrix
from ...collision.shapes import STATIC_ONLY, Plane, Shape
from ..spec import PlaneSpec
from . import check
from .order import who

MAX_HULL_VERTICES = 64
DEFAULT_FRICTION, DEFAULT_RESTITUTION, DEFAULT_DENSITY = 0.5, 0.0, 1000.0
NO_POINTS = np.zeros((0, 3))


@dataclass(frozen=True)
class ShapeRow:
    """A shape of a link (or of the world), in the link's frame. Fields as in Model.

    surface: of hulls and meshes, in the shape's axes.  where: how messages call the shape.
    """

    where: str
    shape: Shape
    size: Array
    points: Array
    position: Array
    quaternion: Array
    friction: float
    restitution: float
    density: float
    material: str | None
    surface: Surface | None = None

    def mass(self) -> MassProperties:
        """In the link's frame."""
        if self.shape.kind == "mesh" and self.surface is not None and not is_closed(self.surface):
            check.reject(
                self.where, "source", "an open surface",
                "it must be closed to have a mass: repair the mesh, or give the body's mass, com and inertia",
            )  # fmt: skip
        return shape_mass(self.shape, self.density, self.surface).moved(self.position, self.quaternion)


def shape_rows(owner: Any, index: int | None = None, moving: bool = True) -> list[ShapeRow]:
    """The shapes of a body, link, plane or static, checked."""
    if type(owner) is PlaneSpec:
        return [_plane_row(owner, index)]
    where = who(owner, index)
    if not isinstance(owner.shapes, tuple):
        check.reject(where, "shapes", owner.shapes, "it must be a list: give shapes=[Sphere(0.1)]")
    inherited = _DEFAULTS | _given(where, owner)
    pose = np.zeros(3), np.eye(4)[0]
    if not moving:  # a static has a pose of its own, in the world
        pose = check.numbers(where, "position", owner.position, (3,), "m"), _quaternion(where, owner)
    return [_row(f"{where}, shape {i}", shape, inherited, pose, moving) for i, shape in enumerate(owner.shapes)]


def _quaternion(where: str, spec: Any) -> Array:
    return check.quaternion(where, "quaternion", spec.quaternion)


def _row(where: str, shape: Any, inherited: dict[str, Any], pose: tuple[Array, Array], moving: bool) -> ShapeRow:
    kind = getattr(shape, "kind", None)
    if kind not in _GEOMETRY or isinstance(shape, type):
        check.reject(where, "kind", shape, f"it must be one of the shapes {', '.join(_GEOMETRY)}: e.g. Sphere(0.1)")
    where = f"{where} ({kind})"
    if moving and kind in STATIC_ONLY:
        check.reject(where, "kind", kind, "it must not move: use add_static or add_plane, or a Box")
    size, points, surface = _GEOMETRY[kind](where, shape)
    position = pose[0] + rotation_matrix(pose[1]) @ check.numbers(where, "position", shape.position, (3,), "m")
    quaternion = quaternion_product(pose[1], _quaternion(where, shape))
    numbers = inherited | _given(where, shape)
    return ShapeRow(where, shape, size, points, position, quaternion, **numbers, surface=surface)


def _plane_row(spec: PlaneSpec, index: int | None) -> ShapeRow:
    where = who(spec, index)
    normal = check.direction(where, "normal", spec.normal)
    position = normal * check.number(where, "offset", spec.offset, "m")
    numbers = _DEFAULTS | _given(where, spec)
    return ShapeRow(where, Plane(), np.zeros(3), NO_POINTS, position, rotation_from_z(normal), **numbers)


_DEFAULTS: dict[str, Any] = {
    "friction": DEFAULT_FRICTION,
    "restitution": DEFAULT_RESTITUTION,
    "density": DEFAULT_DENSITY,
    "material": None,
}


def _given(where: str, spec: Any) -> dict[str, Any]:
    """friction, restitution, density and material as far as this shape or owner gives them."""
    given = {name: getattr(spec, name, None) for name in _DEFAULTS}
    checks: dict[str, Callable[..., Any]] = {
        "friction": check.non_negative,
        "restitution": check.fraction,
        "density": lambda where, field, value: check.positive(where, field, value, unit="kg/m^3"),
        "material": check.text,
    }
    return {name: checks[name](where, name, value) for name, value in given.items() if value is not None}


def _sphere(where: str, s: Any):
    return np.array([check.positive(where, "radius", s.radius, unit="m"), 0, 0]), NO_POINTS, None


def _box(where: str, s: Any):
    return check.positive(where, "half_extents", s.half_extents, (3,), "m"), NO_POINTS, None


def _round(where: str, s: Any):
    radius = check.positive(where, "radius", s.radius, unit="m")
    return np.array([radius, check.positive(where, "half_length", s.half_length, unit="m"), 0]), NO_POINTS, None


def _ellipsoid(where: str, s: Any):
    return check.positive(where, "radii", s.radii, (3,), "m"), NO_POINTS, None


def _plane(where: str, s: Any):
    return np.zeros(3), NO_POINTS, None


def _hull(where: str, s: Any):
    points = check.numbers(where, "points", s.points, (-1, 3), "m")
    if len(points) < 4:
        check.reject(
            where, "points", s.points, f"there must be 4 or more, not {len(points)}: add points, or use a Capsule"
        )
    try:
        vertices, faces = convex_hull(points)
    except MeshError as error:
        check.reject(where, "points", s.points, str(error))
    if len(vertices) > MAX_HULL_VERTICES:
        fix = "simplify the points, or use a Mesh"
        check.reject(where, "points", f"{len(vertices)} vertices", f"a hull has at most {MAX_HULL_VERTICES}: {fix}")
    return np.zeros(3), vertices, (vertices, faces)


def _mesh(where: str, s: Any):
    shown = s.source if isinstance(s.source, str) else "a mesh given as arrays"
    scale = check.numbers(where, "scale", s.scale, () if np.ndim(s.scale) == 0 else (3,))
    if not scale.all():
        check.reject(where, "scale", s.scale, "it must not be zero: give 1 for metres, 0.001 for millimetres")
    try:
        vertices, faces = load_mesh(s.source, scale)
    except MeshError as error:
        check.reject(where, "source", shown, str(error))
    return np.zeros(3), vertices[faces].reshape(-1, 3), (vertices, faces)


def _heightfield(where: str, s: Any):
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
    return np.array([dx, dy, nx]), np.stack([X, Y, heights], axis=-1).reshape(-1, 3), None


# size (3,), points (n, 3) and surface of each kind, as Model.shape_size and Model.points hold them:
# a hull's points are its vertices, a mesh's its triangles' corners (three rows each), a heightfield's its grid
# row by row, with size (dx, dy, number of rows)
_GEOMETRY: dict[str, Callable[[str, Any], tuple[Array, Array, Surface | None]]] = {
    "sphere": _sphere,
    "box": _box,
    "capsule": _round,
    "cylinder": _round,
    "ellipsoid": _ellipsoid,
    "plane": _plane,
    "hull": _hull,
    "mesh": _mesh,
    "heightfield": _heightfield,
}
