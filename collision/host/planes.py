"""A plane and any other shape, in closed form on the host: the lowest point, and others of a side that lies flat."""

from __future__ import annotations

import numpy as np

from .separation import SignedGap
from .shapes import CORNERS, Floats, HostShape

Poses = tuple[Floats, Floats, Floats, Floats]  # positions (3,) [m] and rotations (3, 3) of A and B: pA, RA, pB, RB


def plane_rows(a: HostShape, b: HostShape, poses: Poses, unit: float, tilt: float) -> list[SignedGap]:
    """Up to four rows of a pair with a plane, in metres.

    unit: the shapes' length unit, per metre.  tilt: see `few_of`.
    """
    pa, Ra, pb, Rb = poses
    first = a.kind == "plane"
    shape, R, p = (b, Rb, pb) if first else (a, Ra, pa)
    up, origin = (Ra[:, 2], pa) if first else (Rb[:, 2], pb)
    points = p + _lowest(shape, -up @ R) @ R.T / unit
    gaps = (points - origin) @ up
    hits = []
    for k in few_of(points, gaps, up, tilt):
        below = points[k] - gaps[k] * up
        ends = (-up, below, points[k]) if first else (up, points[k], below)
        hits.append(SignedGap(float(gaps[k]), *ends))
    return hits


def _lowest(shape: HostShape, d: Floats) -> Floats:
    """Points (k, 3) of the shape that include the farthest ones in the unit direction d (3,), also of flat sides."""
    size = shape.size
    if shape.kind == "box":
        return CORNERS * size
    if shape.kind == "capsule":
        return shape.radius * d + np.array([[0, 0, size[1]], [0, 0, -size[1]]])
    if shape.kind == "cylinder":
        length = np.hypot(d[0], d[1])
        u = np.array([d[0], d[1], 0.0]) / length if length > 1e-12 else np.array([1.0, 0.0, 0.0])
        rim = size[0] * np.array([u, -u, [-u[1], u[0], 0], [u[1], -u[0], 0]])
        return np.concatenate([rim + np.array([0, 0, z]) for z in (size[1], -size[1])])
    if len(shape.points):
        return shape.points
    return shape.support(d[None]) + shape.radius * d


def few_of(points: Floats, gaps: Floats, normal: Floats, tilt: float) -> list[int]:
    """Up to four of the points (k, 3) that may touch together: the lowest, and those that span the most with it.

    gaps: (k,) heights above the other side along the normal (3,). A point is included if a rotation by `tilt`
    [rad] would bring it down to the lowest.
    """
    first = int(np.argmin(gaps))
    along = points - points[first]
    along = along - np.outer(along @ normal, normal)
    far = np.linalg.norm(along, axis=1)
    size = far.max()
    joins = np.flatnonzero((gaps - gaps[first] <= tilt * far) & (far > 1e-6 * size))
    if not len(joins):
        return [first]
    second = joins[np.argmax(far[joins])]
    side = np.cross(normal, along[second])
    heights = along[joins] @ side
    chosen = [first, int(second)]
    for extreme in (np.argmax(heights), np.argmin(heights)):
        if abs(heights[extreme]) > 1e-6 * far[second] * size:
            chosen.append(int(joins[extreme]))
    return [chosen[0], *sorted(chosen[1:], key=lambda k: gaps[k])]
