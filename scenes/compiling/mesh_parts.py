"""Meshes of a scene: loaded, and turned into collision geometry: a hull, several, or the triangles themselves."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from ...collision.host.kept import Kept
from ...collision.mesh import MeshReport, inspect_mesh
from ...collision.meshes.hulls import Convex, as_hull, outlines
from ...collision.meshes.pieces import as_pieces
from ...collision.meshes.surfaces import MeshError, Surface, areas
from ...collision.poses import Array
from . import check
from .geometry import Geometry

CONVEX = ("hull", "pieces", "none")
MUCH_LARGER = 0.05  # part of the volume: convex parts that add more give a warning
KEPT, BESIDES = 2**27, 2**14  # [bytes] of kept meshes in all, and of one besides its surface
COARSE = 0.01  # part of the size: if 64 vertices leave out more, there is a warning


def mesh_parts(where: str, s: Any) -> list[Geometry]:
    """One row or several; the first has the mesh's surface, for the mass."""
    shown = s.source if isinstance(s.source, str) else "a mesh given as arrays"
    scale = check.numbers(where, "scale", s.scale, () if np.ndim(s.scale) == 0 else (3,))
    if not scale.all():
        check.reject(where, "scale", s.scale, "it must not be zero: give 1 for metres, 0.001 for millimetres")
    if s.convex is not None and s.convex not in CONVEX:
        check.reject_name(where, "convex", s.convex, CONVEX, "it must say what collides in place of the mesh")
    key = (s.source, _stamp(s.source), tuple(np.broadcast_to(scale, 3).tolist()), s.convex)
    try:
        hash(key)
    except TypeError:
        check.reject(where, "source", s.source, "it must be the path of a file, or arrays: give (vertices, faces)")
    try:
        surface, report, convex = _KEPT.get(key, lambda: _prepare(s.source, scale, s.convex))
    except MeshError as error:
        check.reject(where, "source", shown, str(error))
    for text in _doubts(report, convex, s.convex):
        warnings.warn(f"{where}, source {shown!r}: {text}", stacklevel=2)
    if convex is None:
        corners = surface[0][surface[1][areas(surface) > 0]]  # collapsed triangles have no normal
        return [Geometry("mesh", points=corners.reshape(-1, 3), surface=surface)]
    parts = [Geometry("hull", points=part[0], faces=outlines(part)) for part in convex.parts]
    return [parts[0]._replace(surface=surface), *parts[1:]]


def _stamp(source: object) -> tuple[int, int] | None:
    """Time of a file's last change, and its length [bytes]; None for arrays, and for missing files."""
    try:
        status = os.stat(source if isinstance(source, str) else "")  # a number would be a file descriptor
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


Prepared = tuple[Surface, MeshReport, Convex | None]


def _prepare(source: Any, scale: Array, convex: str | None) -> Prepared:
    surface, report = inspect_mesh(source, scale)
    if convex == "none":
        return surface, report, None
    return surface, report, as_pieces(surface) if convex == "pieces" else as_hull(surface, report.volume)


def _weight(mesh: Prepared) -> int:
    """Bytes of the surface and of the arrays in the key; the rest is small."""
    return BESIDES + 4 * sum(array.nbytes for array in mesh[0])


_KEPT = Kept(KEPT, _weight)  # for a while: scenes have many bodies of one mesh


def _doubts(report: MeshReport, convex: Convex | None, choice: str | None) -> list[str]:
    """Problems that the mesh's author should know."""
    texts = [
        f"{text}: look whether the mesh is what it should be" for text in report.repairs if text.startswith("holes")
    ]
    if convex is None:
        return texts
    if choice is None and not report.closed:
        fix = 'write convex="hull" if that is meant, or convex="none" for the surface itself'
        texts.append(f"its surface is open, and its convex hull is what collides: {fix}")
    elif choice is None and convex.excess > MUCH_LARGER:
        fix = 'write convex="pieces", or convex="hull" if that is meant'
        texts.append(f"its convex hull, which collides in its place, is {100 * convex.excess:.3g} % larger: {fix}")
    elif choice == "pieces" and convex.excess > MUCH_LARGER:
        n, share = len(convex.parts), 100 * convex.excess
        texts.append(f"its {n} convex pieces are together {share:.3g} % larger: make several meshes of it")
    if convex.deviation > COARSE * np.linalg.norm(report.size):
        fix = "use a Sphere, an Ellipsoid or a Capsule if it is one, or cut it up"
        lost = f"up to {convex.deviation:.2g} m"
        texts.append(f"its convex parts have 64 vertices at most, which leaves out {lost} of it: {fix}")
    return texts
