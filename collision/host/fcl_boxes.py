"""The broad phase of FCL: pairs whose boxes come within a margin, found with its tree of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...engine.topology import Topology
from .fcl_shapes import FclShape, fcl_library
from .pair_rows import pair_table
from .shapes import Floats, HostShape

ENDLESS = 1e100  # [m] FCL's tree of boxes takes the volume of a box, and crashes if that is not finite
# FCL's axis-aligned box of each shape, reused: python-fcl leaks a little with each object made
_BOXES: list[tuple[Any, Any]] = []
TAG = 2.0**-40  # python-fcl's callback does not say which object it met: the index is encoded in the object's rotation


class FclScene(NamedTuple):
    """One scene: its shapes in FCL's unit, of which `unit` are a metre, their poses and the margin in metres."""

    topology: Topology
    bodies: list[FclShape]
    unit: float
    positions: Floats
    rotations: Floats
    margin: float

    def finite(self) -> NDArray[np.bool_]:
        """Return whether each shape and its pose are finite, (ns,)."""
        poses = (np.abs(self.positions) < ENDLESS).all(axis=-1) & np.isfinite(self.rotations).all(axis=(-2, -1))
        return poses & np.array([_has_end(body.shape) for body in self.bodies], bool)


def _has_end(shape: HostShape) -> bool:
    return shape.finite and (shape.kind == "plane" or bool((np.abs(shape.bounds) < ENDLESS).all()))


def near_pairs(lane: FclScene, fine: NDArray[np.bool_]) -> list[int]:
    """Rows of the pair table whose boxes come within the margin, ascending; and all pairs with a plane."""
    pairs = lane.topology.pairs
    near: Sequence[int] = range(len(pairs))
    if np.isfinite(lane.margin):
        near = sorted([*pair_table(lane.topology).with_plane, *_near_boxes(lane, fine)])
    return [k for k in near if fine[pairs[k][0]] and fine[pairs[k][1]]]


def _near_boxes(lane: FclScene, fine: NDArray[np.bool_]) -> list[int]:
    bodies, row_of = lane.bodies, pair_table(lane.topology).row
    shapes = [k for k, body in enumerate(bodies) if body.shape.kind != "plane" and fine[k]]
    if not shapes:
        return []
    fcl = fcl_library()
    while len(_BOXES) < len(bodies):
        _BOXES.append((box := fcl.Box(1.0, 1.0, 1.0), fcl.CollisionObject(box)))
    low, high = (np.array([bodies[k].shape.bounds[end] for k in shapes]) / lane.unit for end in (0, 1))
    R = lane.rotations[shapes]
    center = lane.positions[shapes] + np.einsum("nij,nj->ni", R, (low + high) / 2)
    half = np.einsum("nij,nj->ni", np.abs(R), (high - low) / 2) + lane.margin / 2
    for k, c, h in zip(shapes, center, half, strict=True):
        box, item = _BOXES[k]
        box.side = 2 * h
        box.computeLocalAABB()
        item.setRotation(np.array([[1, k * TAG, 0], [0, 1, 0], [0, 0, 1]]))  # widens the box by next to nothing
        item.setTranslation(c)
    tree = fcl.DynamicAABBTreeCollisionManager()
    tree.registerObjects([_BOXES[k][1] for k in shapes])
    tree.setup()
    rows: list[int] = []

    def meet(one: Any, other: Any, _: Any) -> bool:
        i, j = (round(item.getRotation()[0, 1] / TAG) for item in (one, other))
        row = row_of.get((i, j) if i < j else (j, i))
        if row is not None:
            rows.append(row)
        return False

    tree.collide(None, meet)
    return rows
