"""Links of a URDF: mass, centre of mass and inertia, and the shapes that collide."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....collision.poses import rotation_matrix
from ....collision.shapes import ALL_LAYERS, Box, Capsule, Cylinder, Mesh, Shape, Sphere
from ...compiling.check import SceneError
from ...compiling.mesh_parts import mesh_parts
from ..report import Outcome
from .frames import read_origin
from .meshes import find_mesh
from .nodes import XmlElement
from .notes import Notes

ROBOT_LAYER = 2  # layer of shapes that must not touch each other
NOISE = 1e-15  # [m^2] squares of radii of gyration up to here are rounded zeros
TIMES_ONE = (1.0, 1.0, 1.0)
NO_FILE = "there is no such file, so that nothing collides in its place: give package_dirs, where packages lie"


def read_inertial(link: XmlElement) -> dict[str, Any]:
    """mass [kg], com (3,) [m] and inertia (3, 3) about com [kg m^2], in the link's frame."""
    inertial = link.first("inertial")
    if inertial is None:
        return {"mass": 0.0}
    mass = inertial.only("mass").number("value")
    if mass < 0:
        inertial.fail(f'the mass of link "{link.text("name")}" is {mass:g}: give it in kg, 0 for none')
    numbers = inertial.only("inertia")
    xx, yy, zz, xy, xz, yz = (numbers.number(name) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    origin = read_origin(inertial)
    R = rotation_matrix(origin.quaternion)
    inertia = R @ [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]] @ R.T
    inertia[np.abs(inertia) < mass * NOISE] = 0.0
    return {"mass": mass, "com": origin.position, "inertia": inertia} if mass or inertia.any() else {"mass": 0.0}


@dataclass
class ShapeReader:
    """Reads collision elements.

    package_dirs: folders of meshes.  meshes: `Mesh.convex` of all of them.  self_contact: whether the robot's shapes
    may touch each other.
    """

    notes: Notes
    package_dirs: Sequence[str | os.PathLike[str]]
    meshes: str
    self_contact: bool
    missing: int = 0  # meshes that could not be used
    _tried: dict[tuple[str, tuple[float, ...]], str | None] = field(default_factory=dict)

    def read(self, link: XmlElement) -> tuple[Shape, ...]:
        shapes = [
            self._shape(f'link "{link.text("name")}", collision {k}', c) for k, c in enumerate(link.all("collision"))
        ]
        return tuple(shape for shape in shapes if shape is not None)

    def _shape(self, what: str, collision: XmlElement) -> Shape | None:
        geometry, pose = collision.only("geometry"), read_origin(collision)
        collision.optional("name")
        pose_fields: dict[str, Any] = {"position": pose.position, "quaternion": pose.quaternion}
        if not self.self_contact:
            pose_fields |= {"group": ROBOT_LAYER, "mask": ALL_LAYERS ^ ROBOT_LAYER}
        mesh = geometry.first("mesh")
        if mesh is not None:
            return self._mesh(what, mesh, pose_fields)
        for tag, make in _ROUND_AND_FLAT.items():
            node = geometry.first(tag)
            if node is None:
                continue
            shape, sizes = make(node, pose_fields)
            if min(sizes) > 0:
                self.notes.add("taken", collision, f"{what} ({tag})")
                return shape
            if min(sizes) < 0:
                node.fail(f"a size of the {tag} is {min(sizes):g}: sizes are positive, in metres")
            self.notes.add("ignored", collision, f"{what} ({tag})", "its size is 0")
            return None
        why = f"its geometry is none of {', '.join(_ROUND_AND_FLAT)} and mesh: nothing collides in its place"
        self.notes.add("approximated", collision, what, why)
        self.missing += 1
        return None

    def _mesh(self, what: str, node: XmlElement, pose_fields: dict[str, Any]) -> Shape | None:
        written = node.text("filename")
        what = f"{what} (mesh {written})"
        scale = node.numbers("scale", 3, TIMES_ONE)
        path = find_mesh(written, node.path, self.package_dirs)
        if path is None:
            self.missing += 1
            self.notes.add("approximated", node, what, NO_FILE)
            return None
        shape = Mesh(path, scale, convex=self.meshes, **pose_fields)
        key = (path, scale)
        if key not in self._tried:
            self._tried[key] = _flaw(shape)
        flaw = self._tried[key]
        if flaw is not None:
            self.missing += 1
            self.notes.add("approximated", node, what, f"nothing collides in its place: {flaw}")
            return None
        outcome, why = _STANDS_FOR[self.meshes]
        self.notes.add(outcome, node, what, why)
        return shape


def _box(node: XmlElement, pose_fields: dict[str, Any]) -> tuple[Shape, tuple[float, ...]]:
    size = node.numbers("size", 3)
    return Box([x / 2 for x in size], **pose_fields), size


def _sphere(node: XmlElement, pose_fields: dict[str, Any]) -> tuple[Shape, tuple[float, ...]]:
    radius = node.number("radius")
    return Sphere(radius, **pose_fields), (radius,)


def _along_z(
    kind: type[Cylinder] | type[Capsule],
) -> Callable[[XmlElement, dict[str, Any]], tuple[Shape, tuple[float, ...]]]:
    """A reader of shapes along z.  length: that of the cylindrical part."""

    def make(node: XmlElement, pose_fields: dict[str, Any]) -> tuple[Shape, tuple[float, ...]]:
        radius, length = node.number("radius"), node.number("length")
        return kind(radius, length / 2, **pose_fields), (radius, length)

    return make


_ROUND_AND_FLAT = {"box": _box, "sphere": _sphere, "cylinder": _along_z(Cylinder), "capsule": _along_z(Capsule)}

_STANDS_FOR: dict[str, tuple[Outcome, str]] = {
    "hull": ("approximated", "its convex hull collides in its place"),
    "pieces": ("approximated", "convex pieces collide in its place"),
    "none": ("taken", ""),
}


def _flaw(shape: Mesh) -> str | None:
    """The reason why a mesh cannot be used; None: it can."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compile_scene gives the same warnings
        try:
            mesh_parts("mesh", shape)
        except SceneError as error:
            return str(error).partition("; ")[2]
    return None
