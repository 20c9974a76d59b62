"""Shapes in the form in which people describe them: frozen plain data, unchecked until the scene is compiled.

Every shape has its own axes and origin; `position` and `quaternion` place them in the frame of the
body that carries the shape. Capsules and cylinders lie along z; a plane is the halfspace z <= 0 of
its own axes; a heightfield is solid below its surface.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, ClassVar

from .plain import Numbers, make_plain

ALL_LAYERS = 0xFFFFFFFF


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The parameters that all shapes share.

    position: (3,) of the shape's origin in the body's frame [m].
    quaternion: (4,) w x y z, shape to body; normalised if its length is within 1e-3 of one.
    friction: Coulomb coefficient; None takes the body's.
    restitution: 0..1; None takes the body's.
    tangential_restitution: -1..1, the part of slip that an impact returns reversed, under law="chatterjee_ruina"; 1 is
        a superball, 0 ends slip; None takes the body's.
    density: None takes the body's, or 1000 [kg/m^3].
    material: name used by `set_pair`; None takes the body's.
    group, mask: sets of up to 32 layers, one bit each: the layers the shape is in, and those it may touch. Two
        shapes may touch if each is in a layer of the other's mask: (a.group & b.mask) and (b.group & a.mask).
        By default every shape is in layer 0 and may touch all; with group=0 or mask=0 it touches nothing.
    """

    kind: ClassVar[str] = ""
    position: Numbers = (0.0, 0.0, 0.0)
    quaternion: Numbers = (1.0, 0.0, 0.0, 0.0)
    friction: float | None = None
    restitution: float | None = None
    tangential_restitution: float | None = None
    density: float | None = None
    material: str | None = None
    group: int = 1
    mask: int = ALL_LAYERS

    def __post_init__(self) -> None:
        make_plain(self)


@dataclass(frozen=True)
class Sphere(Shape):
    """radius [m]."""

    kind: ClassVar[str] = "sphere"
    radius: float


@dataclass(frozen=True)
class Box(Shape):
    """half_extents (3,) along x, y, z [m]."""

    kind: ClassVar[str] = "box"
    half_extents: Numbers


@dataclass(frozen=True)
class Capsule(Shape):
    """All points within radius [m] of the segment from (0, 0, -half_length) to (0, 0, half_length) [m]."""

    kind: ClassVar[str] = "capsule"
    radius: float
    half_length: float


@dataclass(frozen=True)
class Cylinder(Shape):
    """radius [m] about z, from z = -half_length to half_length [m]."""

    kind: ClassVar[str] = "cylinder"
    radius: float
    half_length: float


@dataclass(frozen=True)
class Ellipsoid(Shape):
    """radii (3,) along x, y, z [m]."""

    kind: ClassVar[str] = "ellipsoid"
    radii: Numbers


@dataclass(frozen=True)
class Plane(Shape):
    """The halfspace z <= 0 of the shape's own axes; static only."""

    kind: ClassVar[str] = "plane"


@dataclass(frozen=True)
class ConvexHull(Shape):
    """The convex hull of points (n, 3) [m], at most 64 of them on the hull."""

    kind: ClassVar[str] = "hull"
    points: Numbers = field(repr=False)


@dataclass(frozen=True)
class Mesh(Shape):
    """A triangle mesh. Its mass is that of the inside of its surface, which must then be closed.

    source: path of an STL, OBJ, PLY, OFF, GLB or DAE file, or a trimesh object (anything with vertices (n, 3) [m] and
    faces (m, 3)), which is kept as the pair (vertices, faces).
    scale: one factor or three, e.g. 0.001 for a file in millimetres; negative ones mirror.
    convex: the shape that collides instead of the mesh.
        "hull": its convex hull, reduced to 64 vertices if it has more.
        "pieces": up to 32 convex pieces, together at most 1 % larger than the mesh if that many are enough; cuts along
        its faces are exact. The mesh must be closed.
        "none": the triangles themselves, of any shape: a surface without an inside that only the FCL backend detects.
        None: the hull, with a warning if it is more than 5 % larger than the mesh.
    """

    kind: ClassVar[str] = "mesh"
    source: Any = field(repr=False)
    scale: Numbers = 1.0
    convex: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        source = self.source
        if hasattr(source, "vertices") and hasattr(source, "faces"):
            object.__setattr__(self, "source", (source.vertices, source.faces))
        elif isinstance(source, PathLike):
            object.__setattr__(self, "source", fspath(source))
        make_plain(self)


@dataclass(frozen=True)
class Heightfield(Shape):
    """Ground over a grid, solid below; static only.

    heights (nx, ny) [m]: vertex (i, j) stands at ((i - (nx-1)/2) dx, (j - (ny-1)/2) dy, heights[i][j]).
    cell: distance between vertices, one number or (dx, dy) [m].
    """

    kind: ClassVar[str] = "heightfield"
    heights: Numbers = field(repr=False)
    cell: Numbers


# kinds that only static geometry may have: their mass is infinite
STATIC_ONLY = frozenset({"plane", "heightfield"})
