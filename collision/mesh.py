"""The only file that imports trimesh: meshes from files and from arrays, repaired, with a report of what was done.

`load_mesh` gives the surface, `inspect_mesh` the surface and the report. A mesh that cannot be used raises MeshError,
which says why. Files are not trusted: every error of their readers becomes a MeshError.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from .meshes.repair import repair
from .meshes.surfaces import Floats, Ints, MeshError, Surface, areas, is_closed, signed_volume

LARGE, SMALL = 10.0, 1e-3  # [m] sizes at which a file is likely to be in other units than metres
EXTREME = 1e30  # [m], and 1/it: the fifth power of a size, as in inertia, must be a finite number
FORMATS = ("stl", "obj", "ply", "off", "glb", "dae")  # trimesh also reads archives, which may unpack to 1000 times more
MOST = 2**28  # bytes of a file
GIVE = "give an STL, OBJ, PLY, OFF, GLB or DAE file"


@dataclass(frozen=True)
class MeshReport:
    """The properties of a mesh, and the repairs that were made.

    repairs: one sentence for each repair.
    vertices, faces: their counts.
    bodies: number of parts that are not connected with each other.
    closed: whether it has an inside.
    volume: nan if it is not closed [m^3].
    size: (3,) of the bounding box [m].
    hint: a remark if the size is unusual, or empty.
    """

    repairs: tuple[str, ...]
    vertices: int
    faces: int
    bodies: int
    closed: bool
    volume: float
    size: tuple[float, float, float]
    hint: str

    def __str__(self) -> str:
        size = " x ".join(f"{x:.4g}" for x in self.size)
        solid = f"closed, {self.volume:.4g} m^3" if self.closed else "open"
        bodies = "1 body" if self.bodies == 1 else f"{self.bodies} bodies"
        counts = f"{self.vertices} vertices, {self.faces} faces, {bodies}"
        return "; ".join(filter(None, [f"{counts}, {size} m, {solid}", *self.repairs, self.hint]))


def load_mesh(source: object, scale: object = 1.0) -> Surface:
    """Surface of a mesh file, or of a pair (vertices, faces), scaled and repaired."""
    return inspect_mesh(source, scale)[0]


def inspect_mesh(source: object, scale: object = 1.0) -> tuple[Surface, MeshReport]:
    """Return the repaired surface and the report.

    source: path of an STL, OBJ, PLY, OFF, GLB or DAE file of 256 MB at most (its parts in their places, as one mesh),
    or a pair of arrays: vertices (n, 3) and faces (m, 3).
    scale: one factor or three, finite and not zero; negative ones mirror.
    """
    factors = _factors(scale)
    vertices, faces = _read(source) if isinstance(source, (str, os.PathLike)) else _from_arrays(source)
    _check(vertices, faces)
    (vertices, faces), repairs, bodies = repair(vertices * factors, faces[:, ::-1] if factors.prod() < 0 else faces)
    size = np.ptp(vertices, axis=0)
    if not 1 / EXTREME < size.max() < EXTREME:
        raise MeshError(f"its size is {size.max():.3g} m: check its numbers and its scale")
    if not areas((vertices, faces)).any():
        raise MeshError("all its faces are degenerate, they have no area: give a mesh with triangles")
    surface = vertices, faces
    closed = is_closed(surface)
    volume = signed_volume(surface) if closed else float("nan")
    box = float(size[0]), float(size[1]), float(size[2])
    return surface, MeshReport(repairs, len(vertices), len(faces), bodies, closed, volume, box, _hint(size.max()))


def _factors(scale: object) -> Floats:
    try:
        factors = np.broadcast_to(np.asarray(scale, float), 3)
    except (TypeError, ValueError):
        raise MeshError(f"its scale is {scale!r}: give one number or three") from None
    if not np.isfinite(factors).all() or not factors.all():
        raise MeshError(f"its scale is {scale!r}: give 1 for metres, 0.001 for millimetres")
    return factors


def _read(path: str | os.PathLike[str]) -> Surface:
    import trimesh

    path = os.fspath(path)
    if os.path.isdir(path):
        raise MeshError("it is a folder: give the path of a file in it")
    if not os.path.isfile(path):
        raise MeshError(f"there is no such file: give a path that is absolute, or relative to {os.getcwd()!r}")
    kind = os.path.splitext(path)[1].lower().removeprefix(".")
    if kind not in FORMATS:
        raise MeshError(f"its name ends in {kind[:20]!r}, which is no format that is read: {GIVE}")
    size = os.path.getsize(path)
    if size == 0:
        raise MeshError(f"the file is empty: {GIVE}")
    if size > MOST:
        raise MeshError(f"the file has {size / 2**20:.0f} MB, and may have {MOST >> 20}: simplify the mesh")
    try:
        mesh = trimesh.load_mesh(path, file_type=kind, process=False)
        return np.array(mesh.vertices, np.float64), np.array(mesh.faces, np.int64)
    except Exception as error:  # trimesh's readers raise any error of their file formats
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        cause = cause if len(cause) < 200 else cause[:200] + "..."
        raise MeshError(f"trimesh cannot read it ({cause}): {GIVE}") from error


def _from_arrays(source: Any) -> Surface:
    give = "give (vertices, faces) of shapes (n, 3) and (m, 3), a trimesh object, or the path of a file"
    try:
        vertices, faces = source
        vertices, faces = np.array(vertices, np.float64), np.asarray(faces)
        whole = faces.astype(np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise MeshError(f"it is not made of vertices and faces ({error}): {give}") from error
    if vertices.size == 0 or faces.size == 0:
        return np.zeros((0, 3)), np.zeros((0, 3), np.int64)
    if vertices.shape[1:] != (3,) or faces.shape[1:] != (3,):
        raise MeshError(f"its vertices and faces have the shapes {vertices.shape} and {faces.shape}: {give}")
    if not np.array_equal(whole, faces):
        raise MeshError(f"its faces must be numbers of vertices, whole numbers: {give}")
    return vertices, whole


def _check(vertices: Floats, faces: Ints) -> None:
    if not len(faces):
        raise MeshError("it has no triangles: give a mesh with faces")
    if faces.min() < 0 or faces.max() >= len(vertices):
        worst = faces.min() if faces.min() < 0 else faces.max()
        raise MeshError(f"a face names vertex {worst} of {len(vertices)}, numbered from 0: repair the mesh")
    if not np.isfinite(vertices[faces]).all():
        raise MeshError("some of its vertices are not finite: repair the mesh")


def _hint(size: float) -> str:
    if size > LARGE:
        return f"it is {size:.4g} m long: if it is in millimetres, give scale=0.001"
    if size < SMALL:
        return f"it is {size:.4g} m long: if it is in another unit than metres, give scale"
    return ""
