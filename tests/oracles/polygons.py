"""Flat convex polygons: what two have in common (Sutherland & Hodgman, 1974), and the largest four of its corners."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .minkowski import Array


def common(one: Array, other: Array) -> Array:
    """Corners (k, 2) of the part that two counter-clockwise convex polygons (n, 2) share, each once [m]."""
    left = list(one)
    for p, q in zip(other, np.roll(other, -1, 0), strict=True):
        kept: list[Array] = []
        for x, y in zip(left, [*left[1:], *left[:1]], strict=True):
            beyond = [float(np.cross(np.append(q - p, 0), np.append(z - p, 0))[2]) for z in (x, y)]
            if beyond[0] >= 0:
                kept.append(x)
            if beyond[0] * beyond[1] < 0:
                kept.append(x + (y - x) * beyond[0] / (beyond[0] - beyond[1]))
        left = kept
    corners: list[Array] = []
    for x in left:
        if all(np.linalg.norm(x - c) > 1e-9 for c in corners):
            corners.append(x)
    return np.array(corners).reshape(-1, 2)


def area(points: Array) -> float:
    """Of the convex hull of points (k, 2), in any order [m^2]."""
    if len(points) < 3:
        return 0.0
    middle = points - points.mean(0)
    x, y = middle[np.argsort(np.arctan2(middle[:, 1], middle[:, 0]))].T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)


def largest_four(points: Array) -> float:
    """Area that the best four of some corners (k, 2) span [m^2]."""
    return max(
        (area(points[list(four)]) for four in combinations(range(len(points)), min(4, len(points)))), default=0.0
    )
