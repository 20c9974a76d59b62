"""How much of a heightfield a body can touch at once: a number of cells, fixed when the scene is compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .geometry import Geometry

Window = tuple[int, int]

# radius of a ball around a shape of size s [m]
RADII = {
    "sphere": lambda s: s[0],
    "box": lambda s: float(np.linalg.norm(s)),
    "capsule": lambda s: s[0] + s[1],
    "cylinder": lambda s: float(np.hypot(s[0], s[1])),
    "ellipsoid": max,
}


def windows(shapes: Sequence[Geometry], pairs: Sequence[tuple[int, int]]) -> tuple[Window, ...]:
    """Of each shape the rows and columns of cells in its window; zeros but for heightfields.

    The window reaches half a cell beyond the largest shape that may touch, wherever in a cell that stands.
    """
    widest = dict.fromkeys(range(len(shapes)), 0.0)
    for pair in pairs:
        for field, other in (pair, pair[::-1]):
            if shapes[field].kind == "heightfield":
                widest[field] = max(widest[field], 2 * _radius(shapes[other]))
    return tuple(_window(shape, widest[k]) for k, shape in enumerate(shapes))


def _window(shape: Geometry, width: float) -> Window:
    if shape.kind != "heightfield":
        return 0, 0
    rows, columns = (min(n - 1, int(np.ceil(width / d)) + 2) for n, d in zip(shape.grid, shape.size, strict=False))
    return rows, columns


def _radius(shape: Geometry) -> float:
    if shape.kind in RADII:
        return RADII[shape.kind](shape.size)
    middle = (shape.points.min(axis=0) + shape.points.max(axis=0)) / 2
    return float(np.linalg.norm(shape.points - middle, axis=1).max())
