"""Checked geometry: one row of the model's shape arrays for each shape, and its mass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...collision.mass import MassProperties, shape_mass
from ...collision.meshes.surfaces import is_closed
from ...collision.poses import Array, quaternion_product, rotation_from_z, rotation_matrix
from ...collision.shapes import STATIC_ONLY, Plane, Shape
from ..spec import PlaneSpec, StaticSpec
from . import check
from .geometry import GEOMETRY, Geometry
from .mesh_parts import mesh_parts
from .order import label_of

KINDS = (*GEOMETRY, "mesh")
DEFAULT_FRICTION, DEFAULT_RESTITUTION, DEFAULT_DENSITY = 0.5, 0.0, 1000.0


@dataclass(frozen=True)
class ShapeRow:
    """A shape of a link (or of the world), or a part of it, in the link's frame. Fields as in Model.

    where: name of the shape in messages.  weighs: whether it has the shape's mass; only a mesh's first part does.
    twist: (6,) of the surface of a static that moves in place, at the shape's origin, world axes.
    """

    where: str
    shape: Shape
    geometry: Geometry
    position: Array
    quaternion: Array
    friction: float
    restitution: float
    tangential_restitution: float
    density: float
    material: str | None
    weighs: bool = True
    twist: Array = field(default_factory=lambda: np.zeros(6))

    def mass(self) -> MassProperties:
        """Mass of the whole shape, in the link's frame."""
        surface = self.geometry.surface
        if self.shape.kind == "mesh" and surface is not None and not is_closed(surface):
            check.reject(
                self.where, "source", "an open surface",
                "it must be closed to have a mass: repair the mesh, or give the body's mass, com and inertia",
            )  # fmt: skip
        mass = shape_mass(self.shape, self.density, surface)
        if mass.mass <= 0:
            check.reject(
                self.where, "source", "a surface that encloses no volume",
                "it must have an inside to have a mass: repair the mesh, or give the body's mass, com and inertia",
            )  # fmt: skip
        return mass.in_frame(self.position, self.quaternion)


def shape_rows(owner: Any, index: int | None = None, moving: bool = True) -> list[ShapeRow]:
    """The shapes of a body, link, plane or static, checked."""
    if type(owner) is PlaneSpec:
        return [_plane_row(owner, index)]
    where = label_of(owner, index)
    if not isinstance(owner.shapes, tuple):
        check.reject(where, "shapes", owner.shapes, "it must be a list: give shapes=[Sphere(0.1)]")
    inherited = _DEFAULTS | _own_material(where, owner)
    pose = np.zeros(3), np.eye(4)[0]
    if not moving:  # a static has a pose of its own, in the world
        pose = check.numbers(where, "position", owner.position, (3,), "m"), _quaternion(where, owner)
    rows = [
        row
        for i, shape in enumerate(owner.shapes)
        for row in _rows(f"{where}, shape {i}", shape, inherited, pose, moving)
    ]
    return rows if moving else _add_twist(where, owner, rows, pose[0])


def _add_twist(where: str, owner: StaticSpec, rows: list[ShapeRow], origin: Array) -> list[ShapeRow]:
    w = check.numbers(where, "angular_velocity", owner.angular_velocity, (3,), "rad/s")
    v = check.numbers(where, "linear_velocity", owner.linear_velocity, (3,), "m/s")
    return [replace(r, twist=np.concatenate([w, v + np.cross(w, r.position - origin)])) for r in rows]


def _quaternion(where: str, spec: StaticSpec | Shape) -> Array:
    return check.quaternion(where, "quaternion", spec.quaternion)


def _rows(where: str, shape: Any, inherited: dict[str, Any], pose: tuple[Array, Array], moving: bool) -> list[ShapeRow]:
    kind = getattr(shape, "kind", None)
    if kind not in KINDS or isinstance(shape, type):
        check.reject(where, "kind", shape, f"it must be one of the shapes {', '.join(KINDS)}: e.g. Sphere(0.1)")
    where = f"{where} ({kind})"
    if moving and kind in STATIC_ONLY:
        check.reject(where, "kind", kind, "it must not move: use add_static or add_plane, or a Box")
    parts = mesh_parts(where, shape) if kind == "mesh" else [GEOMETRY[kind](where, shape)]
    position = pose[0] + rotation_matrix(pose[1]) @ check.numbers(where, "position", shape.position, (3,), "m")
    quaternion = quaternion_product(pose[1], _quaternion(where, shape))
    numbers = inherited | _own_material(where, shape)
    return [ShapeRow(where, shape, g, position, quaternion, **numbers, weighs=k == 0) for k, g in enumerate(parts)]


def _plane_row(spec: PlaneSpec, index: int | None) -> ShapeRow:
    where = label_of(spec, index)
    normal = check.direction(where, "normal", spec.normal)
    position = normal * check.number(where, "offset", spec.offset, "m")
    numbers = _DEFAULTS | _own_material(where, spec)
    plane = Plane(group=spec.group, mask=spec.mask)
    return ShapeRow(where, plane, GEOMETRY["plane"](where, plane), position, rotation_from_z(normal), **numbers)


_DEFAULTS: dict[str, Any] = {
    "friction": DEFAULT_FRICTION,
    "restitution": DEFAULT_RESTITUTION,
    "tangential_restitution": DEFAULT_RESTITUTION,
    "density": DEFAULT_DENSITY,
    "material": None,
}


def _own_material(where: str, spec: object) -> dict[str, Any]:
    """The friction, restitutions, density and material that this shape or owner gives."""
    given = {name: getattr(spec, name, None) for name in _DEFAULTS}
    checks: dict[str, Callable[[str, str, object], Array | str]] = {
        "friction": check.non_negative,
        "restitution": check.fraction,
        "tangential_restitution": check.signed_fraction,
        "density": lambda where, field, value: check.positive(where, field, value, unit="kg/m^3"),
        "material": check.text,
    }
    return {name: checks[name](where, name, value) for name, value in given.items() if value is not None}
