"""Radii of balls around shapes, in numpy: computed once, when a scene is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engine.model import Model

Array = NDArray[Any]

# of a ball about the origin of a shape that is given by its size (n, 3) and is centred there
OF_SIZE: dict[str, Callable[[Array], Array]] = {
    "sphere": lambda s: s[:, 0],
    "box": lambda s: _length(s),
    "capsule": lambda s: s[:, 0] + s[:, 1],
    "cylinder": lambda s: _length(s[:, :2]),
    "ellipsoid": lambda s: s.max(1),
}


def bounding_radii(model: Model) -> Array:
    """Radii (ns,) of balls around the shapes [m], about the middle of shapes made of points; inf for planes."""
    return _radii(model, lambda points: points - (points.min(0) + points.max(0)) / 2, np.inf)


def origin_radii(model: Model) -> Array:
    """The same about the shapes' origins; 0 for planes."""
    return _radii(model, lambda points: points, 0.0)


def _radii(model: Model, centred: Callable[[Array], Array], of_planes: float) -> Array:
    size, points = np.asarray(model.shape_size), np.asarray(model.points)
    kinds = np.array(model.topology.shape_kinds, str)
    radius = np.full(len(kinds), of_planes, size.dtype)
    of_points = ("hull", "mesh", "heightfield")
    for kind in set(model.topology.shape_kinds) - {"plane", *of_points}:
        radius[kinds == kind] = OF_SIZE[kind](size[kinds == kind])
    for k in np.flatnonzero(np.isin(kinds, of_points)):
        radius[k] = _length(centred(points[slice(*model.topology.shape_points[k])])).max()
    return radius


def _length(x: Array) -> Array:
    return np.sqrt((x * x).sum(1))
