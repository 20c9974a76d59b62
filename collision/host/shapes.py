"""Shapes in numpy, for detectors that run on the host: supports, insides, triangles, corners.

A shape is a core and a radius around it: a sphere is a point, a capsule a segment, every other shape its own core.
Overlaps within the radii are then distances between cores, which are easy to find.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
SOUPS = frozenset({"mesh", "heightfield"})  # kinds that are surfaces of triangles
SAME_VERTEX = 1e-9  # corners of triangles closer than this part of the mesh's size are one vertex


@dataclass(frozen=True)
class HostShape:
    """One shape in its own axes, lengths in any unit.

    kind, size (3,) and points (n, 3) as in `engine.model.Model`; faces: outlines of a hull's faces, indices of its
    points.
    """

    kind: str
    size: Floats
    points: Floats
    faces: tuple[tuple[int, ...], ...] = ()

    @property
    def is_rounded(self) -> bool:
        return self.kind in ("sphere", "capsule")

    @property
    def radius(self) -> float:
        """Radius of the rounding about the core [m]."""
        return float(self.size[0]) if self.is_rounded else 0.0

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.size).all() and np.isfinite(self.points).all())

    @property
    def is_soup(self) -> bool:
        return self.kind in SOUPS

    def support(self, d: Floats) -> Floats:
        """The core's farthest points (k, 3) in the directions d (k, 3), of any length but zero."""
        if self.kind == "sphere":
            return np.zeros_like(d)
        if self.kind == "capsule":
            return np.where(d[:, 2:] >= 0, 1.0, -1.0) * [0.0, 0.0, self.size[1]]
        if self.kind == "box":
            return np.where(d >= 0, self.size, -self.size)
        if self.kind == "cylinder":
            across = np.hypot(d[:, :1], d[:, 1:2])
            rim = self.size[0] * d[:, :2] / np.where(across > 0, across, 1.0)
            return np.concatenate([rim, np.where(d[:, 2:] >= 0, self.size[1], -self.size[1])], axis=1)
        if self.kind == "ellipsoid":
            stretched = self.size * d
            return self.size * stretched / np.maximum(np.linalg.norm(stretched, axis=1, keepdims=True), 1e-300)
        return self.points[np.argmax(d @ self.points.T, axis=1)]

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Lower and upper corner (3,) of the box around the shape along its own axes."""
        if len(self.points):
            return self.points.min(axis=0), self.points.max(axis=0)
        half = np.diag(self.support(np.eye(3))) + self.radius
        return -half, half

    @cached_property
    def middle(self) -> Floats:
        """Middle (3,) of that box."""
        return (self.bounds[0] + self.bounds[1]) / 2

    @property
    def any_point(self) -> Floats:
        """A point (3,) of the core, on the surface if the shape is a surface."""
        return self.points[0] if len(self.points) else np.zeros(3)

    @cached_property
    def least_width(self) -> float:
        """The smaller side of that box; for a surface the larger side, since a flat one has no width."""
        sides = self.bounds[1] - self.bounds[0]
        return float(sides.max() if self.is_soup else sides.min())

    @cached_property
    def girth(self) -> float:
        """Sum of the three sides of that box."""
        return float((self.bounds[1] - self.bounds[0]).sum())

    @cached_property
    def normals(self) -> Floats:
        """Outward unit normals (k, 3): of a soup's triangles, of a polyhedron's faces, of a cylinder's ends.
        A contact normal is likely to be one of them."""
        if self.is_soup:
            return _unit_normals(self.triangles)
        if self.faces:
            return _unit_normals(np.array([self.points[list(ring[:3])] for ring in self.faces]))
        axes = {"box": np.eye(3), "cylinder": np.eye(3)[2:]}.get(self.kind, np.zeros((0, 3)))
        return np.concatenate([axes, -axes])

    @cached_property
    def edges(self) -> Floats:
        """Directions (k, 3) of the straight edges, and of the lines along a round side."""
        if self.kind == "hull":
            ends = {
                (min(i, j), max(i, j)) for ring in self.faces for i, j in zip(ring, (*ring[1:], ring[0]), strict=True)
            }
            start, end = np.array(sorted(ends)).T
            return self.points[end] - self.points[start]
        return {"box": np.eye(3), "capsule": np.eye(3)[2:], "cylinder": np.eye(3)[2:]}.get(self.kind, np.zeros((0, 3)))

    @cached_property
    def triangles(self) -> Floats:
        """Corners (m, 3, 3) of a soup's triangles, counter-clockwise seen from outside (above)."""
        if self.kind == "mesh":
            return self.points.reshape(-1, 3, 3)
        rows, columns = self._grid
        n = np.arange(rows * columns).reshape(rows, columns)
        a, b, c, d = (x.ravel() for x in (n[:-1, :-1], n[1:, :-1], n[1:, 1:], n[:-1, 1:]))
        return self.points[np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])]

    @cached_property
    def has_inside(self) -> bool:
        """Return whether there is an inside: below heightfields; in meshes with each edge run once each way."""
        if self.kind == "heightfield":
            return True
        step = SAME_VERTEX * max(self.least_width, 1e-300)
        corners = np.round((self.points - self.bounds[0]) / step)
        number = np.unique(corners, axis=0, return_inverse=True)[1].reshape(-1, 3)
        start, end = number.ravel(), np.roll(number, -1, axis=1).ravel()
        ways, counts = np.unique(start * (number.max() + 1) + end, return_counts=True)
        back = np.unique(end * (number.max() + 1) + start)
        return bool((counts == 1).all() and np.array_equal(ways, back))

    def contains(self, point: Floats) -> bool:
        """Return whether a soup contains the point (3,), which must not be on the surface."""
        if not self.has_inside:
            return False
        low, high = self.bounds
        if self.kind == "heightfield":
            return bool((low[:2] <= point[:2]).all() and (point[:2] <= high[:2]).all() and self._below(point))
        return bool((low <= point).all() and (point <= high).all() and abs(self._winding(point)) > 0.5)

    def _winding(self, point: Floats) -> float:
        """Winding number of the surface about the point, by the sum of solid angles (Van Oosterom & Strackee, 1983)."""
        a, b, c = np.moveaxis(self.triangles - point, 1, 0)
        la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
        volume = np.einsum("ij,ij->i", a, np.cross(b, c))
        ab, bc, ca = (np.einsum("ij,ij->i", x, y) for x, y in ((a, b), (b, c), (c, a)))
        return float(np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb).sum() / (2 * np.pi))

    @property
    def _grid(self) -> tuple[int, int]:
        rows = round(float(self.size[2]))
        return rows, len(self.points) // rows

    def _below(self, point: Floats) -> bool:
        rows, columns = self._grid
        cell = (point[:2] - self.points[0, :2]) / self.size[:2]
        i, j = np.clip(cell.astype(int), 0, [rows - 2, columns - 2])
        x, y = cell - (i, j)
        z = self.points[:, 2].reshape(rows, columns)
        # the cell's diagonal runs from (i, j) to (i + 1, j + 1)
        middle = z[i + 1, j] if x >= y else z[i, j + 1]
        near, far = (x, y) if x >= y else (y, x)
        return bool(point[2] < z[i, j] + near * (middle - z[i, j]) + far * (z[i + 1, j + 1] - middle))


def _unit_normals(corners: Floats) -> Floats:
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)


def crossings(a: Floats, b: Floats) -> Floats:
    """Unit vectors (k, 3) across each pair of directions a (m, 3) and b (n, 3), both ways; none for parallel pairs."""
    across = np.cross(a[:, None], b[None]).reshape(-1, 3)
    length = np.linalg.norm(across, axis=1)
    limit = 1e-9 * np.linalg.norm(a, axis=1).max(initial=0) * np.linalg.norm(b, axis=1).max(initial=0)
    across = across[length > limit] / length[length > limit, None]
    return np.concatenate([across, -across])
