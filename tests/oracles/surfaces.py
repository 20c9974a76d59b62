"""How far points are from a solid's surface: one implicit function a kind, in the solid's own axes."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull

from .minkowski import Array, Solid


def height(field: Solid, xy: Array) -> Array:
    """Of a heightfield's surface over points (..., 2) of its own axes, or over the border's nearest points [m].

    Each cell is two triangles that share the diagonal from vertex (i, j) to (i + 1, j + 1).
    """
    dx, dy, nx = field.size
    z = field.points[:, 2].reshape(int(nx), -1)
    cells = np.array(z.shape) - 1
    place = np.clip(np.asarray(xy) / [dx, dy] + cells / 2, 0, cells)
    i = np.minimum(np.floor(place), cells - 1).astype(int)
    u, v = np.moveaxis(place - i, -1, 0)
    low, high = z[i[..., 0], i[..., 1]], z[i[..., 0] + 1, i[..., 1] + 1]
    along_x, along_y = z[i[..., 0] + 1, i[..., 1]], z[i[..., 0], i[..., 1] + 1]
    over_x = low + u * (along_x - low) + v * (high - along_x)
    over_y = low + v * (along_y - low) + u * (high - along_y)
    return np.where(u >= v, over_x, over_y)


def _beside(field: Solid, xy: Array) -> Array:
    """How far points (..., 2) are beyond the border of a heightfield [m]."""
    half = np.abs(field.points[:, :2]).max(0)
    return np.maximum(np.abs(xy) - half, 0.0).max(-1)


def residual(s: Solid, point: Array) -> Array:
    """Of points (..., 3) in the world [m]: positive outside, negative inside, zero on the surface; a distance to first
    order, but for a heightfield, where it is the height above."""
    p = s.to_local(point)
    across, size = np.hypot(p[..., 0], p[..., 1]), s.size
    if s.kind == "plane":
        return p[..., 2]
    if s.kind == "heightfield":
        above, beside = p[..., 2] - height(s, p[..., :2]), _beside(s, p[..., :2])
        wall = (np.abs(np.abs(p[..., :2]) - np.abs(s.points[:, :2]).max(0)) < 1e-12).any(-1) & (above < 0)
        return np.where(beside > 0, np.maximum(above, beside), np.where(wall, 0.0, above))
    if s.kind == "hull":
        e = ConvexHull(s.points).equations
        return (p @ e[:, :3].T + e[:, 3]).max(-1)
    if s.kind == "box":
        return (np.abs(p) - size).max(-1)
    if s.kind == "cylinder":
        return np.maximum(across - size[0], np.abs(p[..., 2]) - size[1])
    if s.kind == "capsule":
        return np.hypot(across, np.maximum(np.abs(p[..., 2]) - size[1], 0.0)) - size[0]
    if s.kind == "ellipsoid":
        f = np.linalg.norm(p / size, axis=-1)
        return f * (f - 1) / np.maximum(np.linalg.norm(p / size**2, axis=-1), 1e-300)
    return np.linalg.norm(p, axis=-1) - size[0]
