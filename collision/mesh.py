"""The only file that imports trimesh: loading, convex hulls, mass properties of closed surfaces.

A surface is a pair of arrays: vertices (n, 3) [m] and faces (m, 3), wound counter-clockwise seen from outside.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

Surface = tuple[NDArray[np.float64], NDArray[np.int64]]


class MeshError(ValueError):
    """A mesh or hull that cannot be used; the text says why and what to do."""


def load_mesh(source: Any, scale: Any = 1.0) -> Surface:
    """Surface of a mesh file, or of a pair (vertices, faces), scaled and with its normals pointing outwards."""
    import trimesh

    try:
        if isinstance(source, str):
            if not os.path.isfile(source):
                raise MeshError(f"there is no such file: give a path that is absolute, or relative to {os.getcwd()!r}")
            mesh = trimesh.load_mesh(source, process=True)
        else:
            vertices, faces = source
            mesh = trimesh.Trimesh(np.asarray(vertices, float), np.asarray(faces, int), process=True)
        vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces, int)
    except MeshError:
        raise
    except Exception as error:  # trimesh's readers raise whatever their file formats raise
        cause = f"{type(error).__name__}: {error}"
        raise MeshError(f"trimesh cannot read it ({cause}): give an STL, OBJ or PLY file") from error
    if not len(faces):
        raise MeshError("it has no triangles: give a mesh with faces")
    if not np.isfinite(vertices).all():
        raise MeshError("some of its vertices are not finite: repair the mesh")
    vertices = vertices * np.asarray(scale, float)
    if _signed_volume(vertices, faces) < 0:  # inside out, or mirrored by the scale
        faces = faces[:, ::-1]
    return vertices, np.ascontiguousarray(faces)


def convex_hull(points: NDArray[np.float64]) -> Surface:
    """Surface of the convex hull; its vertices are those of `points` that are corners of it."""
    import trimesh

    size = np.linalg.norm(np.ptp(points, axis=0))
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    if size == 0 or spread[-1] <= 1e-9 * size * np.sqrt(len(points)):
        raise MeshError("they lie in one plane: give points that enclose a volume, or use a thin Box")
    hull = trimesh.convex.convex_hull(points)
    return np.asarray(hull.vertices, float), np.asarray(hull.faces, int)


def is_closed(surface: Surface) -> bool:
    """Every edge is shared by two faces that run along it in opposite directions."""
    import trimesh

    mesh = trimesh.Trimesh(*surface, process=False)
    return bool(mesh.is_watertight and mesh.is_winding_consistent)


def solid_moments(surface: Surface) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Volume [m^3], centroid (3,) [m] and inertia about the centroid at density 1 (3, 3) [m^5] of the inside."""
    import trimesh

    vertices, faces = surface
    origin = vertices.mean(axis=0)  # moments about a far origin would cancel
    moments = trimesh.triangles.mass_properties((vertices - origin)[faces], density=1.0)
    return float(moments.volume), origin + np.asarray(moments.center_mass), np.asarray(moments.inertia)


def _signed_volume(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> float:
    a, b, c = np.moveaxis((vertices - vertices.mean(axis=0))[faces], 1, 0)
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)
