"""The drawing of a scene: a mesh for every shape, with its link, its pose there and its colour.

Links without shapes are drawn as the box that has their mass and inertia, on a bone from their joint.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from ...collision.poses import rotation_from_z, rotation_matrix
from ...engine.model import Model
from ..compiling.geometry import Geometry
from ..compiling.order import label_of, sort_links
from ..compiling.shape_rows import ShapeRow, shape_rows
from ..spec import BodySpec, LinkSpec, SceneSpec
from .colours import BONE, GROUND, MATERIALS, STATIC, Colour, link_colours, pattern
from .meshes import Floats, RenderMesh, ball, box, cylinder, mesh_of, surface_mesh

TIES: dict[str, Colour] = {"distance": BONE, "spring": (0.86, 0.55, 0.2)}
THIN = 0.03  # least thickness of a bone, as part of its length


class Drawn(NamedTuple):
    """A shape.  link: -1 is the world.  mesh: row of `Drawing.meshes`.  position (3,) [m] and quaternion (4,) in the
    link's frame.  colour: sRGB.  pattern: one of `colours.PATTERNS`.  solid, wire: whether it is in the picture, and
    in the wireframe of collision shapes.  lane: the only one that has it; None: all."""

    link: int
    mesh: int
    position: Floats
    quaternion: Floats
    colour: Colour
    pattern: str = "plain"
    solid: bool = True
    wire: bool = True
    lane: int | None = None


class Tie(NamedTuple):
    """A rod or a spring.  a, b: links, -1 is the world.  at_a, at_b (3,): its ends, in the links' frames [m]."""

    a: int
    at_a: Floats
    b: int
    at_b: Floats
    colour: Colour


class DrawnPlane(NamedTuple):
    """The halfspace normal . x <= offset, static.  normal (3,) in W; offset [m]."""

    normal: Floats
    offset: float
    colour: Colour


class Drawing(NamedTuple):
    """A drawing.  names, parents: of the links, in the model's order.  owners: name of every shape's owner: link,
    static or plane.  ties: between links, drawn as lines."""

    names: tuple[str, ...]
    parents: tuple[int, ...]
    meshes: list[RenderMesh]
    shapes: list[Drawn]
    planes: list[DrawnPlane]
    owners: tuple[str, ...]
    ties: tuple[Tie, ...] = ()


def drawing_of(scene: SceneSpec, model: Model, lanes: Sequence[int] = (0,)) -> Drawing:
    """The drawing of a scene.  model: the scene's, whose parameters may be batched; then the lanes that are drawn."""
    return _Maker(scene, model, lanes).drawing


class _Maker:
    def __init__(self, scene: SceneSpec, model: Model, lanes: Sequence[int]) -> None:
        specs, parents = sort_links(scene)
        self.model, self.lanes = model, lanes
        self.names = tuple(spec.name for spec in specs)
        self.meshes: list[RenderMesh] = []
        self.numbers: dict[Hashable, int] = {}
        self.shapes: list[Drawn] = []
        self.planes: list[DrawnPlane] = []
        self.colours = link_colours(self.names, parents)
        rows = _rows(scene, specs)
        for k, (row, link, _) in enumerate(rows):
            self.add_shape(k, row, link)
        for link in sorted(set(range(len(specs))) - {link for _, link, _ in rows}):
            self.add_bones(link, parents)
        owners = tuple(owner for *_, owner in rows)
        self.drawing = Drawing(self.names, parents, self.meshes, self.shapes, self.planes, owners, self.ties())

    def add_shape(self, k: int, row: ShapeRow, link: int) -> None:
        colour = self.colours[link] if link >= 0 else MATERIALS.get(row.material or "", STATIC)
        g = row.geometry
        if g.kind == "plane":
            normal = rotation_matrix(row.quaternion)[:, 2]
            self.planes.append(
                DrawnPlane(normal, float(normal @ row.position), MATERIALS.get(row.material or "", GROUND))
            )
            return
        look = pattern(self.names[link] if link >= 0 else "", g.kind, self.names) if link >= 0 else "plain"
        varied = any(self.varies(name) for name in ("shape_size", "shape_position", "shape_quaternion", "points"))
        first, last = self.model.topology.shape_points[k]
        for lane in self.lanes if varied else (None,):
            size, position, quaternion = (
                self.number(name, lane)[k] for name in ("shape_size", "shape_position", "shape_quaternion")
            )
            points = self.number("points", lane)[first:last]
            mesh = self.mesh_number(g._replace(size=size, points=points))
            at = Drawn(link, mesh, position, quaternion, colour, look, lane=lane)
            if row.shape.kind != "mesh" or g.kind == "mesh" or self.varies("points"):
                self.shapes.append(at)
                continue
            # in the picture the mesh itself, in the wireframe the convex parts that collide instead
            self.shapes.append(at._replace(solid=False))
            if (surface := g.surface) is not None:
                key = ("surface", surface[0].tobytes(), surface[1].tobytes())
                number = self.add_mesh(key, lambda surface=surface: surface_mesh(surface))
                self.shapes.append(at._replace(mesh=number, wire=False))

    def add_bones(self, link: int, parents: Sequence[int]) -> None:
        """The box of the link's mass and inertia, and bones to it and to the joints that hang on the link."""
        joints = self.number("joint_position", None)
        ends = [joints[child] for child, parent in enumerate(parents) if parent == link]
        for loop, positions in zip(self.model.topology.loops, self.number("loop_position", None), strict=True):
            if not loop.dofs:
                ends += [position for end, position in zip((loop.a, loop.b), positions, strict=True) if end == link]
        mass, com, inertia = (self.number(name, None)[link] for name in ("mass", "com", "inertia"))
        reach = max([float(np.linalg.norm(end)) for end in (*ends, com)], default=0.0)
        thick = THIN * (reach or 1.0)
        if mass > 0:
            half, axes = _inertia_box(mass, inertia)
            if half.max() > 0:
                half = np.maximum(half, THIN * half.max())
                self.add_part(link, ("box", *half), lambda: box(half), com, quaternions(axes), self.colours[link])
            else:
                self.add_part(link, ("ball", thick), lambda: ball(2 * thick), com, np.eye(4)[0], self.colours[link])
            if half.max() < 0.8 * np.linalg.norm(com):
                ends.append(com)
        for end in ends:
            length = float(np.linalg.norm(end))
            if length > 1e-9:
                quaternion = rotation_from_z(end / length)
                size = thick / 3, length / 2
                self.add_part(link, ("bone", *size), lambda s=size: cylinder(*s), end / 2, quaternion, BONE)

    def add_part(
        self,
        link: int,
        key: Hashable,
        make: Callable[[], RenderMesh],
        position: Floats,
        quaternion: Floats,
        colour: Colour,
    ) -> None:
        self.shapes.append(Drawn(link, self.add_mesh(key, make), position, quaternion, colour, wire=False))

    def ties(self) -> tuple[Tie, ...]:
        loops = zip(self.model.topology.loops, self.number("loop_position", None), strict=True)
        return tuple(Tie(loop.a, at[0], loop.b, at[1], TIES[loop.kind]) for loop, at in loops if loop.kind in TIES)

    def varies(self, name: str) -> bool:
        return getattr(self.model, name).ndim > Model.base_ndim(name)

    def number(self, name: str, lane: int | None) -> Floats:
        """A parameter of the model, in one lane."""
        array = np.asarray(getattr(self.model, name), float)
        return array[self.lanes[0] if lane is None else lane] if self.varies(name) else array

    def mesh_number(self, g: Geometry) -> int:
        return self.add_mesh((g.kind, g.size.tobytes(), g.points.tobytes(), g.faces, g.grid), lambda: mesh_of(g))

    def add_mesh(self, key: Hashable, make: Callable[[], RenderMesh]) -> int:
        """Add a mesh, equal ones once; return its row."""
        if key not in self.numbers:
            self.numbers[key] = len(self.meshes)
            self.meshes.append(make())
        return self.numbers[key]


def _rows(scene: SceneSpec, specs: Sequence[BodySpec | LinkSpec]) -> list[tuple[ShapeRow, int, str]]:
    """The model's shapes in its order, each with its link and its owner."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compile_scene has given them
        rows = [
            (row, -1, static.name or label_of(static, k).split()[0])
            for k, static in enumerate(scene.statics)
            for row in shape_rows(static, k, moving=False)
        ]
        return rows + [(row, link, spec.name) for link, spec in enumerate(specs) for row in shape_rows(spec)]


def _inertia_box(mass: float, inertia: Floats) -> tuple[Floats, Floats]:
    """Half extents (3,) [m] and axes (columns) of the solid box of this mass and inertia: I_x = m (b^2 + c^2)/3."""
    moments, axes = np.linalg.eigh(inertia)
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1, 1, -1])
    return np.sqrt(np.maximum(1.5 / mass * (moments.sum() - 2 * moments), 0.0)), axes


def quaternions(rotation: Floats) -> Floats:
    """Unit quaternions w x y z (..., 4) of rotation matrices (..., 3, 3).

    Each of the four ways to write one, from the largest of its numbers: Shepperd, J. Guidance and Control 1 (1978).
    """
    R = np.asarray(rotation, float)
    xx, yy, zz = (R[..., k, k] for k in range(3))
    squares = np.stack([1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz], axis=-1)  # 4 w^2, ...
    wx, wy, wz = (R[..., i, j] - R[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
    xy, xz, yz = (R[..., i, j] + R[..., j, i] for i, j in ((0, 1), (0, 2), (1, 2)))
    w2, x2, y2, z2 = np.moveaxis(squares, -1, 0)
    rows = [(w2, wx, wy, wz), (wx, x2, xy, xz), (wy, xy, y2, yz), (wz, xz, yz, z2)]
    ways = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    best = np.take_along_axis(ways, squares.argmax(-1)[..., None, None], axis=-2)[..., 0, :]
    return best / np.linalg.norm(best, axis=-1, keepdims=True)
