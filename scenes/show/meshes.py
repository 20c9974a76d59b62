"""Meshes of shapes: triangles with normals, and the few lines of a wireframe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...collision.meshes.surfaces import Surface
from ..compiling.geometry import Geometry

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AROUND = 48  # sides of a round shape
CREASE = 0.8  # cosine of the angle to the mean normal of a vertex beyond which a face keeps its edge sharp
FINEST = 64  # lines each way that are drawn of a heightfield


class RenderMesh(NamedTuple):
    """A mesh in the shape's own axes: vertices (n, 3) [m], their unit normals (n, 3), faces (m, 3) counter-clockwise
    from outside, and edges (k, 2, 3): ends of the wireframe's lines [m]."""

    vertices: Floats
    normals: Floats
    faces: Ints
    edges: Floats

    def scale(self, factors: Floats) -> RenderMesh:
        """Scale along x, y and z."""
        s = np.asarray(factors, float)
        normals = self.normals / s
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        return RenderMesh(self.vertices * s, normals, self.faces, self.edges * s)


def mesh_of(geometry: Geometry) -> RenderMesh:
    """The mesh of a row of the model; planes are infinite and have no mesh."""
    return _MESHES[geometry.kind](geometry)


def faceted_mesh(polygons: Sequence[Floats]) -> RenderMesh:
    """The mesh of flat convex faces, each a ring of corners (k, 3) [m], counter-clockwise from outside."""
    vertices, normals, faces, edges, start = [], [], [], [], 0
    for ring in polygons:
        n = len(ring)
        following = np.roll(ring, -1, axis=0)
        normal = np.cross(ring, following).sum(axis=0)  # twice the area, along the normal (Newell)
        normal /= max(float(np.linalg.norm(normal)), 1e-300)
        fan = np.arange(1, n - 1)
        vertices.append(ring)
        normals.append(np.tile(normal, (n, 1)))
        faces.append(start + np.stack([np.zeros_like(fan), fan, fan + 1], axis=1))
        edges.append(np.stack([ring, following], axis=1))
        start += n
    return RenderMesh(*(np.concatenate(parts) for parts in (vertices, normals, faces, edges)))


def revolve(profile: Floats, rings: Sequence[int]) -> RenderMesh:
    """A profile revolved about z.  profile (n, 4): radius, height [m], and the normal's parts along them, from the
    bottom up.  rings: those points of the profile whose circles are in the wireframe."""
    n = len(profile)
    angle = np.arange(AROUND + 1) * (2 * np.pi / AROUND)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    r, z, nr, nz = (np.broadcast_to(column, (AROUND + 1, n)) for column in profile.T)
    vertices = np.stack([c * r, s * r, z], axis=-1)
    normals = np.stack([c * nr, s * nr, nz], axis=-1)
    i, j = np.meshgrid(np.arange(AROUND), np.arange(n - 1), indexing="ij")
    a, b = (i * n + j).ravel(), ((i + 1) * n + j).ravel()
    faces = np.concatenate([np.stack([a, b, b + 1], axis=1), np.stack([a, b + 1, a + 1], axis=1)])
    circles = [np.stack([vertices[:-1, k], vertices[1:, k]], axis=1) for k in rings]
    meridians = [np.stack([vertices[k, :-1], vertices[k, 1:]], axis=1) for k in range(0, AROUND, AROUND // 4)]
    return RenderMesh(vertices.reshape(-1, 3), normals.reshape(-1, 3), faces, np.concatenate(circles + meridians))


def _arc(first: float, last: float, radius: float, height: float) -> Floats:
    """Part of a profile: an arc of a circle about (0, height), angles from the equator."""
    angle = np.linspace(first, last, max(2, round(AROUND * (last - first) / (2 * np.pi)) + 1))
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([radius * c, height + radius * s, c, s], axis=1)


def ball(radius: float) -> RenderMesh:
    profile = _arc(-np.pi / 2, np.pi / 2, radius, 0.0)
    return revolve(profile, [len(profile) // 2])


def capsule(radius: float, half_length: float) -> RenderMesh:
    below, above = _arc(-np.pi / 2, 0, radius, -half_length), _arc(0, np.pi / 2, radius, half_length)
    return revolve(np.concatenate([below, above]), [len(below) - 1, len(below)])


def cylinder(radius: float, half_length: float, top: float | None = None) -> RenderMesh:
    """A cylinder, or a cone.  top: radius of the upper end of a cone [m]."""
    upper, h = radius if top is None else top, half_length
    side = np.array([2 * h, radius - upper]) / np.hypot(2 * h, radius - upper)
    ends = [[0, -h, 0, -1], [radius, -h, 0, -1], [radius, -h, *side], [upper, h, *side], [upper, h, 0, 1], [0, h, 0, 1]]
    return revolve(np.array(ends, float), [2, 3])


def box(half_extents: Floats) -> RenderMesh:
    faces = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            ring = np.zeros((4, 3))
            ring[:, axis] = sign
            ring[:, (axis + 1) % 3] = np.array([-1, 1, 1, -1])
            ring[:, (axis + 2) % 3] = np.array([-1, -1, 1, 1]) * sign
            faces.append(ring * np.asarray(half_extents, float))
    return faceted_mesh(faces)


def surface_mesh(surface: Surface) -> RenderMesh:
    """The mesh of any triangles; smooth, except at edges of more than some forty degrees."""
    vertices, faces = surface
    corners = vertices[faces]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    flat = cross / np.maximum(np.linalg.norm(cross, axis=1, keepdims=True), 1e-300)
    mean = np.zeros_like(vertices)
    np.add.at(mean, faces, cross[:, None, :])
    mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-300)
    smooth = np.einsum("fk,fvk->fv", flat, mean[faces]) > CREASE
    normals = np.where(smooth[..., None], mean[faces], flat[:, None, :]).reshape(-1, 3)
    # corners with the same vertex and normal are one again
    keys = np.concatenate([faces.reshape(-1, 1), np.round(normals * 1e4).astype(np.int64)], axis=1)
    _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    sides = np.sort(np.stack([faces, np.roll(faces, -1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    edges = vertices[np.unique(sides, axis=0)]
    return RenderMesh(corners.reshape(-1, 3)[first], normals[first], number.reshape(-1, 3), edges)


def _hull(g: Geometry) -> RenderMesh:
    return faceted_mesh([g.points[list(ring)] for ring in g.faces])


def _triangles(g: Geometry) -> RenderMesh:
    return surface_mesh((g.points, np.arange(len(g.points)).reshape(-1, 3)))


def _heightfield(g: Geometry) -> RenderMesh:
    rows, columns = g.grid
    grid = g.points.reshape(rows, columns, 3)
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns - 1), indexing="ij")
    a, b = (i * columns + j).ravel(), ((i + 1) * columns + j).ravel()
    faces = np.concatenate([np.stack([a, b, b + 1], axis=1), np.stack([a, b + 1, a + 1], axis=1)])
    smooth = surface_mesh((g.points, faces))
    lines = []
    for k in range(0, rows, -(-rows // FINEST)):
        lines.append(np.stack([grid[k, :-1], grid[k, 1:]], axis=1))
    for k in range(0, columns, -(-columns // FINEST)):
        lines.append(np.stack([grid[:-1, k], grid[1:, k]], axis=1))
    return smooth._replace(edges=np.concatenate(lines))


_MESHES: dict[str, Callable[[Geometry], RenderMesh]] = {
    "sphere": lambda g: ball(g.size[0]),
    "box": lambda g: box(g.size),
    "capsule": lambda g: capsule(g.size[0], g.size[1]),
    "cylinder": lambda g: cylinder(g.size[0], g.size[1]),
    "ellipsoid": lambda g: ball(1.0).scale(g.size),
    "hull": _hull,
    "mesh": _triangles,
    "heightfield": _heightfield,
}
