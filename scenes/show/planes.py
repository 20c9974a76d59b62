"""Finite polygons of infinite planes for pictures, which other planes cut off as cushions do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...collision.poses import rotation_from_z, rotation_matrix
from .drawing import DrawnPlane
from .meshes import Floats

FAR = 40.0  # the ground is drawn to this many sizes of the scene, far beyond where it has faded
STEEP = 0.7  # part of a normal along z below which a plane is a wall, and no higher than what happens in front of it


class Patch(NamedTuple):
    """A polygon (k, 3) [m], counter-clockwise seen from the free side; endless: it fades out, uncut."""

    corners: Floats
    plane: DrawnPlane
    endless: bool


def patches(planes: Sequence[DrawnPlane], low: Floats, high: Floats) -> list[Patch]:
    """The polygons of planes.  low, high (3,): the box of the motion [m]."""
    size = float(np.linalg.norm(high - low))
    middle = (low + high) / 2
    drawn = []
    for plane in planes:
        axes = rotation_matrix(rotation_from_z(plane.normal))
        origin = middle - plane.normal * (plane.normal @ middle - plane.offset)
        square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * FAR * size
        ring = origin + square @ axes[:, :2].T
        cuts = [(other.normal, other.offset) for other in planes if other is not plane]
        if abs(plane.normal[2]) < STEEP:
            up = np.array([0.0, 0.0, 1.0])
            cuts += [(-up, -high[2]), (up, low[2])]
        for normal, offset in cuts:
            ring = clip_polygon(ring, normal, offset)
        if len(ring) >= 3:
            reach = float(np.abs(ring - origin).max())
            drawn.append(Patch(ring, plane, reach > 0.5 * FAR * size))
    return drawn


def with_patches(drawn: Sequence[Patch], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The box (3,), (3,) [m] with the finite polygons of planes, at most twice the size."""
    room = float((high - low).max())
    for patch in drawn:
        if not patch.endless:
            low = np.minimum(low, np.maximum(patch.corners.min(0), low - room / 2))
            high = np.maximum(high, np.minimum(patch.corners.max(0), high + room / 2))
    return low, high


def clip_polygon(ring: Floats, normal: Floats, offset: float) -> Floats:
    """The part of a convex polygon (k, 3) with normal . x >= offset (Sutherland and Hodgman 1974)."""
    kept: list[Floats] = []
    heights = ring @ normal - offset
    for a, b, ha, hb in zip(ring, np.roll(ring, -1, axis=0), heights, np.roll(heights, -1), strict=True):
        if ha >= 0:
            kept.append(a)
        if ha * hb < 0:
            kept.append(a + (b - a) * (ha / (ha - hb)))
    return np.array(kept).reshape(-1, 3)
