"""Shapes as FCL objects, cached for many pairs. This is the only file that imports fcl."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...engine.topology import Topology
from .kept import Kept
from .shapes import Floats, HostShape

SIZE = 1e4  # of the largest shape in FCL's unit: its tolerance of 1e-6 then is 1e-10
POINT = 1e-6  # radius of FCL's core of a sphere or capsule, in its unit of length
KEPT, BESIDES = 2**27, 2**13  # [bytes] of cached shapes, and of one shape apart from its points


def fcl_library() -> Any:
    """The module fcl; else raise an ImportError that says how to install it."""
    try:
        import fcl
    except ImportError as error:
        raise ImportError(
            "the FCL backend needs python-fcl: pip install python-fcl, or use backend='device'"
        ) from error
    return fcl


class FclShape(NamedTuple):
    """A shape with lengths in FCL's unit, and its core as FCL objects, one for each side of a pair."""

    shape: HostShape
    first: Any
    second: Any
    by_mesh: Any  # a sphere's core by a mesh: FCL places points between spheres and triangles wrongly


def bodies_of(topology: Topology, sizes: Floats, points: Floats) -> tuple[list[FclShape], float]:
    """The shapes of one lane, and FCL's units per metre: a power of two that makes the largest shape about SIZE."""
    shapes = []
    for k, (kind, (start, stop)) in enumerate(zip(topology.shape_kinds, topology.shape_points, strict=True)):
        faces = topology.shape_faces[k] if topology.shape_faces else ()
        shapes.append(HostShape(kind, sizes[k], points[start:stop], faces))
    widths = [np.ptp(shape.bounds, axis=0).max() for shape in shapes if shape.kind != "plane" and shape.finite]
    largest = max(widths, default=0.0)
    unit = 2.0 ** np.round(np.log2(SIZE / largest)) if largest > 0 else 1.0
    return [_cached_shape(x, unit) for x in shapes], unit


def _cached_shape(x: HostShape, unit: float) -> FclShape:
    key = x.kind, x.size.tobytes(), x.points.tobytes(), x.faces, unit
    return _KEPT.get(key, lambda: _body(*key))


def _weight(body: FclShape) -> int:
    """Approximate size of a body [bytes]: FCL's tree over a triangle takes ten times its corners."""
    return BESIDES + (20 if body.shape.is_soup else 4) * body.shape.points.nbytes


_KEPT = Kept(KEPT, _weight)


def _body(kind: str, size: bytes, points: bytes, faces: tuple[tuple[int, ...], ...], unit: float) -> FclShape:
    s = np.frombuffer(size) * unit
    if kind == "heightfield":
        s[2] /= unit  # a count
    shape = HostShape(kind, s, np.frombuffer(points).reshape(-1, 3) * unit, faces)
    if kind == "plane" or not shape.finite:
        return FclShape(shape, None, None, None)
    fcl, geometry = fcl_library(), _geometry(shape)
    first, second = fcl.CollisionObject(geometry), fcl.CollisionObject(geometry)
    point = fcl.CollisionObject(fcl.Ellipsoid(POINT, POINT, POINT)) if kind == "sphere" else None
    return FclShape(shape, first, second, point)


def _geometry(shape: HostShape) -> Any:
    fcl, (x, y, z) = fcl_library(), shape.size.tolist()
    if shape.is_soup:
        corners = np.ascontiguousarray(shape.triangles.reshape(-1, 3))
        model = fcl.BVHModel()
        model.beginModel(len(corners) // 3, len(corners))
        model.addSubModel(corners, np.arange(len(corners)).reshape(-1, 3))
        model.endModel()
        return model
    if shape.kind == "hull":
        flat = [number for ring in shape.faces for number in (len(ring), *ring)]
        return fcl.Convex(shape.points, len(shape.faces), np.array(flat))
    makers = {
        "sphere": lambda: fcl.Sphere(POINT),
        "capsule": lambda: fcl.Capsule(POINT, 2 * y),
        "box": lambda: fcl.Box(2 * x, 2 * y, 2 * z),
        "cylinder": lambda: fcl.Cylinder(x, 2 * y),
        "ellipsoid": lambda: fcl.Ellipsoid(x, y, z),
    }
    return makers[shape.kind]()
