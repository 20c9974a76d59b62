"""Solids cut by planes, exactly; `pieces.py` cuts meshes with them.

A solid's faces are cycles of directed edges in a plane, of any shape: several rings, holes, crossings. So
no cut ever needs a triangulation: a face is clipped edge by edge and closed along the line of the cut, and the cap
closes all faces together. Every vertex of a half is a vertex of the solid or lies on one of its edges, so
that the hull of the vertices is the hull of the half.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .repair import coincident
from .surfaces import Floats, Ints, Surface, directed_edges


@dataclass(frozen=True, eq=False)
class ClosedMesh:
    """vertices (n, 3) [m]; edges (m, 2) directed, counter-clockwise about their face seen from outside; face (m,) of
    each edge; normals (f, 3) of the faces, unit, outwards (zero where a face has no area)."""

    vertices: Floats
    edges: Ints
    face: Ints
    normals: Floats

    @staticmethod
    def of(surface: Surface, slack: float) -> ClosedMesh:
        """The mesh of a closed surface; faces in one plane, up to slack times the size, become one."""
        vertices, faces = surface
        a, b, c = np.moveaxis(vertices[faces], 1, 0)
        normals = np.cross(b - a, c - a)
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        normals = normals / np.where(length > 0, length, 1.0)
        size = np.ptp(vertices, axis=0).max()
        offsets = np.einsum("ij,ij->i", normals, a - vertices.mean(axis=0)) / size
        _, plane = coincident(np.column_stack([normals, offsets]), slack)
        first = np.zeros(plane.max() + 1, np.int64)
        first[plane[::-1]] = np.arange(len(faces))[::-1]
        edges = np.stack(directed_edges(faces), axis=1)
        solid = ClosedMesh(vertices, *_net(edges, np.repeat(plane, 3)), normals[first])
        return solid.part(np.arange(len(solid.edges)))

    def volume(self) -> float:
        """Volume [m^3], the sum of tetrahedra between the middle, a vertex of each face, and its edges."""
        if not len(self.edges):
            return 0.0
        apex = np.zeros(len(self.normals), np.int64)
        apex[self.face[::-1]] = self.edges[::-1, 0]
        points = self.vertices - self.vertices.mean(axis=0)
        a, b = points[self.edges[:, 0]], points[self.edges[:, 1]]
        return float(np.einsum("ij,ij->", points[apex[self.face]], np.cross(a, b)) / 6)

    def heights(self, normal: Floats, offset: float, slack: float) -> Floats:
        """Heights of the vertices above the plane normal . x = offset [m], 0 for those within slack."""
        heights = self.vertices @ normal - offset
        return np.where(np.abs(heights) <= slack, 0.0, heights)

    def part(self, kept: Ints) -> ClosedMesh:
        """Return the mesh of some of the edges, given by index, with their vertices and faces."""
        used, edges = np.unique(self.edges[kept], return_inverse=True)
        faces, face = np.unique(self.face[kept], return_inverse=True)
        return ClosedMesh(self.vertices[used], edges.reshape(-1, 2), face.ravel(), self.normals[faces])

    def edge_components(self) -> Ints:
        """Index of the connected part that each edge (m,) belongs to."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        n = len(self.vertices)
        graph = coo_array((np.ones(len(self.edges), np.int8), self.edges.T), shape=(n, n))
        return connected_components(graph, directed=False)[1][self.edges[:, 0]]


def cut(solid: ClosedMesh, normal: Floats, offset: float, slack: float) -> tuple[ClosedMesh, ClosedMesh]:
    """Return the halves above and below the plane normal . x = offset; vertices within slack [m] count as on it."""
    heights = solid.heights(normal, offset, slack)
    solid, heights = _split_edges(solid, heights)
    return _above(solid, heights, normal), _above(solid, -heights, -normal)


def crossings(solid: ClosedMesh, heights: Floats) -> tuple[Ints, Floats]:
    """Edges that the plane crosses, each once, (k, 2) from below to above, and the points (k, 3) of crossing."""
    start, end = solid.edges.T
    rising = (heights[start] < 0) & (heights[end] > 0)
    falling = (heights[start] > 0) & (heights[end] < 0)
    edges = np.unique(np.concatenate([solid.edges[rising], solid.edges[falling][:, ::-1]]), axis=0)
    low, high = heights[edges[:, 0], None], heights[edges[:, 1], None]
    a, b = solid.vertices[edges[:, 0]], solid.vertices[edges[:, 1]]
    return edges, a + (b - a) * (low / (low - high))


def _split_edges(solid: ClosedMesh, heights: Floats) -> tuple[ClosedMesh, Floats]:
    """Return the same solid with a vertex wherever an edge crosses the plane."""
    pairs, points = crossings(solid, heights)
    n = len(solid.vertices)
    keys = pairs[:, 0] * n + pairs[:, 1]  # sorted, as `unique` left them
    start, end = solid.edges.T
    crosses = heights[start] * heights[end] < 0
    below = np.where(heights[start] < 0, start, end)
    above = np.where(heights[start] < 0, end, start)
    middle = n + np.searchsorted(keys, (below * n + above)[crosses])
    first = np.stack([start[crosses], middle], axis=1)
    second = np.stack([middle, end[crosses]], axis=1)
    edges = np.concatenate([solid.edges[~crosses], first, second])
    face = np.concatenate([solid.face[~crosses], solid.face[crosses], solid.face[crosses]])
    vertices = np.concatenate([solid.vertices, points])
    return replace(solid, vertices=vertices, edges=edges, face=face), np.concatenate([heights, np.zeros(len(points))])


def _above(solid: ClosedMesh, heights: Floats, normal: Floats) -> ClosedMesh:
    """The half whose vertices have heights >= 0, closed. No edge crosses the plane."""
    top, bottom = np.full(len(solid.normals), -np.inf), np.full(len(solid.normals), np.inf)
    np.maximum.at(top, solid.face, heights[solid.edges].max(axis=1))
    np.minimum.at(bottom, solid.face, heights[solid.edges].min(axis=1))
    # faces in the plane belong to the half that they bound from outside: they face away from it
    lid = ((top == 0) & (bottom == 0) & (solid.normals @ normal < 0))[solid.face]
    upper = (heights[solid.edges] >= 0).all(axis=1) & (heights[solid.edges] > 0).any(axis=1)
    edges, face = solid.edges[upper], solid.face[upper]
    lines, of = _close_faces(solid, edges, face, normal)
    flat, flat_face = solid.edges[lid], solid.face[lid]
    # the cap runs along all edges in the plane, except those that cancel, in the opposite direction
    rim = np.concatenate([lines, flat])
    cap, cap_face = _net(rim[:, ::-1], np.full(len(rim), len(solid.normals)))
    half = ClosedMesh(
        solid.vertices,
        np.concatenate([edges, lines, flat, cap]),
        np.concatenate([face, of, flat_face, cap_face]),
        np.concatenate([solid.normals, [-normal]]),
    )
    return half.part(np.arange(len(half.edges)))


def _close_faces(solid: ClosedMesh, edges: Ints, face: Ints, normal: Floats) -> tuple[Ints, Ints]:
    """Edges (k, 2) in the plane that close clipped faces, and their faces (k,).

    Where more edges of a face end than begin, the outline continues along the line of the cut. The points on that line
    are sorted; the edges between neighbours are those that have ended so far and not begun again.
    """
    n = len(solid.vertices)
    keys, index = np.unique(np.concatenate([face * n + edges[:, 1], face * n + edges[:, 0]]), return_inverse=True)
    ends = np.bincount(index[: len(edges)], minlength=len(keys)) - np.bincount(index[len(edges) :], minlength=len(keys))
    keys, ends = keys[ends != 0], ends[ends != 0]
    of, point = keys // n, keys % n
    along = np.cross(normal, solid.normals[of])
    order = np.lexsort((np.einsum("ij,ij->i", along, solid.vertices[point]), of))
    of, point, flow = of[order], point[order], np.cumsum(ends[order])
    a, b, flow, of = point[:-1], point[1:], flow[:-1], of[:-1]  # the flow is back at zero when a face is done
    lines = np.where((flow > 0)[:, None], np.stack([a, b], axis=1), np.stack([b, a], axis=1))
    return np.repeat(lines, np.abs(flow), axis=0), np.repeat(of, np.abs(flow))


def _net(edges: Ints, face: Ints) -> tuple[Ints, Ints]:
    """Return edges (k, 2) and their faces, without edges that are the reverse of another edge of their face."""
    if not len(edges):
        return edges, face
    n = edges.max() + 1
    lines, line = np.unique(edges.min(axis=1) * n + edges.max(axis=1), return_inverse=True)
    keys, index = np.unique(face * len(lines) + line, return_inverse=True)
    count = np.bincount(index, weights=np.where(edges[:, 0] < edges[:, 1], 1.0, -1.0)).astype(np.int64)
    low, high = np.divmod(lines[keys % len(lines)], n)
    net = np.where((count > 0)[:, None], np.stack([low, high], axis=1), np.stack([high, low], axis=1))
    return np.repeat(net, np.abs(count), axis=0), np.repeat(keys // len(lines), np.abs(count))
