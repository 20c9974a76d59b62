"""Triangulated surfaces: whether they are closed, and the properties of their inside.

A surface is a pair of arrays: vertices (n, 3) [m] and faces (m, 3), wound counter-clockwise seen from outside.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Surface = tuple[Floats, Ints]


class MeshError(ValueError):
    """A mesh or hull that cannot be used; the text says why and what to do."""


def directed_edges(faces: Ints) -> tuple[Ints, Ints]:
    """Start and end vertex (3 m,) of the faces' sides, three after three."""
    return faces.ravel(), np.roll(faces, -1, axis=1).ravel()


def edge_runs(faces: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Group the sides of faces that are the same edge.

    Returns (order, first, forward): side number `order[k]`; where in `order` each edge's sides begin (and the end);
    whether a side runs from its smaller vertex to its larger, by side number.
    """
    start, end = directed_edges(faces)
    key = np.minimum(start, end) * (faces.max(initial=0) + 1) + np.maximum(start, end)
    order = np.argsort(key, kind="stable")
    new = np.flatnonzero(np.diff(key[order])) + 1
    return order, np.concatenate([[0], new, [len(key)]]), start < end


def boundary(faces: Ints) -> Ints:
    """Directed edges (k, 2) that are not balanced by their reverses: none if the surface is closed.

    An edge that the faces run along twice more in one direction than in the other is listed twice.
    """
    if not len(faces):
        return np.zeros((0, 2), np.int64)
    order, first, forward = edge_runs(faces)
    net = np.add.reduceat(np.where(forward[order], 1, -1), first[:-1])
    open_ = np.flatnonzero(net)
    side = order[first[open_]]
    start, end = directed_edges(faces)
    low, high = np.minimum(start[side], end[side]), np.maximum(start[side], end[side])
    rises = net[open_] > 0
    edges = np.stack([np.where(rises, low, high), np.where(rises, high, low)], axis=1)
    return np.repeat(edges, np.abs(net[open_]), axis=0)


def is_closed(surface: Surface) -> bool:
    """Return whether every edge is run equally often in both directions, so that the surface encloses a volume."""
    return len(surface[1]) > 0 and not len(boundary(surface[1]))


def tetrahedra(surface: Surface, origin: Floats) -> tuple[Floats, Floats]:
    """Corners (m, 3, 3) of the faces minus the origin [m], and the signed volumes (m,) they span with it [m^3]."""
    vertices, faces = surface
    corners = (vertices - origin)[faces]
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    return corners, np.einsum("ij,ij->i", a, np.cross(b, c)) / 6


def signed_volume(surface: Surface) -> float:
    """Volume [m^3], negative if the surface is inside out. For an open surface it depends on the origin."""
    return float(tetrahedra(surface, surface[0].mean(axis=0))[1].sum())


def areas(surface: Surface) -> Floats:
    """Areas of the faces, (m,) [m^2]."""
    a, b, c = np.moveaxis(surface[0][surface[1]], 1, 0)
    return np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2


def solid_moments(surface: Surface) -> tuple[float, Floats, Floats]:
    """Volume [m^3], centroid (3,) [m] and inertia about the centroid at density 1 (3, 3) [m^5] of the inside.

    It is a sum over tetrahedra between a point and the faces, with the second moments of a tetrahedron as in Blow and
    Binstock, "How to find the inertia tensor (or other mass properties) of a 3D solid body represented by a
    triangle mesh" (2004).
    """
    origin = surface[0].mean(axis=0)  # moments about a far origin would cancel
    corners, volumes = tetrahedra(surface, origin)
    volume = float(volumes.sum())
    if volume == 0:
        return 0.0, origin, np.zeros((3, 3))
    sums = corners.sum(axis=1)
    centroid = volumes @ sums / (4 * volume)
    weighted = corners * volumes[:, None, None]
    second = (np.einsum("fvi,fvj->ij", weighted, corners) + (sums * volumes[:, None]).T @ sums) / 20
    second -= volume * np.outer(centroid, centroid)
    return volume, origin + centroid, np.trace(second) * np.eye(3) - second
