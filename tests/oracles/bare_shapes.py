"""Shapes put on the links of any model by hand, without a scene: numbers in, Model out."""

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

from carom.engine.model import Model


@dataclass
class BareShape:
    """A shape of a link (-1: the world), fields as in Model; points (n, 3) and faces of hulls and fields."""

    kind: str
    size: Any = (0.0, 0.0, 0.0)
    link: int = -1
    position: Any = (0.0, 0.0, 0.0)
    quaternion: Any = (1.0, 0.0, 0.0, 0.0)
    points: Any = field(default_factory=lambda: np.zeros((0, 3)))
    faces: tuple[tuple[int, ...], ...] = ()


def hull(points: np.ndarray, **fields: Any) -> BareShape:
    """The hull of points, with its triangles counter-clockwise seen from outside."""
    found = ConvexHull(points)
    corners, faces = points[found.vertices], []
    number = {int(v): k for k, v in enumerate(found.vertices)}
    for triangle, plane in zip(found.simplices, found.equations, strict=True):
        a, b, c = (int(v) for v in triangle)
        outside = np.cross(points[b] - points[a], points[c] - points[a]) @ plane[:3] > 0
        faces.append(tuple(number[v] for v in ((a, b, c) if outside else (a, c, b))))
    return BareShape("hull", points=corners, faces=tuple(faces), **fields)


def with_shapes(model: Model, shapes: list[BareShape], pairs: tuple[tuple[int, int], ...] = ()) -> Model:
    """The model with these shapes and pairs in place of its own."""
    ends = np.cumsum([0, *(len(s.points) for s in shapes)]).tolist()
    topology = replace(
        model.topology,
        shape_kinds=tuple(s.kind for s in shapes),
        shape_links=tuple(s.link for s in shapes),
        shape_points=tuple(itertools.pairwise(ends)),
        shape_faces=tuple(s.faces for s in shapes),
        shape_grid=((0, 0),) * len(shapes),
        pairs=pairs,
    )
    return model.replace(
        topology=topology,
        shape_size=np.array([s.size for s in shapes], float),
        shape_position=np.array([s.position for s in shapes], float),
        shape_quaternion=np.array([s.quaternion for s in shapes], float),
        points=np.concatenate([np.asarray(s.points, float) for s in shapes]),
        friction=np.zeros(len(shapes)),
        restitution=np.zeros(len(shapes)),
        tangential_restitution=np.zeros(len(shapes)),
        pair_friction=np.zeros(len(pairs)),
        pair_restitution=np.zeros(len(pairs)),
        pair_tangential_restitution=np.zeros(len(pairs)),
    )
