"""Frames of loops: plain arrays of one loop, and rotations whose x axes are the joints'."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...collision.poses import Array, quaternion_product
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Mat3

# shape of each parameter of a loop, see `engine.model.Model`
SHAPES = {
    "loop_position": (2, 3), "loop_quaternion": (2, 4), "loop_size": (), "loop_course": (5,), "loop_spring": (2, 4),
    "loop_stiff": (2,), "loop_damp": (2,), "loop_limits": (2, 2), "loop_active": (),
}  # fmt: skip
NO_LIMITS = np.array([(-np.inf, np.inf)] * 2)


def plain(*frames: tuple[Array, Array]) -> dict[str, Any]:
    """A loop's numbers, zeros except its frames: (position (3,), quaternion (4,)) on a and on b."""
    numbers = {name: np.zeros(shape) for name, shape in SHAPES.items()} | {"loop_limits": NO_LIMITS, "loop_active": 1.0}
    numbers["loop_quaternion"][:, 0] = 1.0
    for k, (position, quaternion) in enumerate(frames):
        numbers["loop_position"][k], numbers["loop_quaternion"][k] = position, quaternion
    return numbers


def axes(first: Array, second: Array | None = None) -> Array:
    """A rotation whose x axis is `first`, and whose y axis is as near `second` as possible."""
    if second is None:
        second = np.eye(3)[int(np.abs(first).argmin())]
    y = second - first * (first @ second)
    y = y / np.linalg.norm(y)
    return np.stack([first, y, np.cross(first, y)], 1)


def axes_to(second: Array, first: Array) -> Array:
    """A rotation whose y axis is `second`, and whose x axis is as near `first` as possible."""
    y, x, z = axes(second, first).T
    return np.stack([x, y, -z], 1)


def rotate_frames(numbers: dict[str, Any], by_a: Array, by_b: Array) -> dict[str, Any]:
    """Rotate the frames so that their x axes are the joint's."""
    both = zip(numbers["loop_quaternion"], (by_a, by_b), strict=True)
    return numbers | {"loop_quaternion": np.array([quaternion_product(q, quaternion_of(R)) for q, R in both])}


def quaternion_of(R: Array) -> Array:
    q = Quat.from_matrix(Mat3(*R.reshape(9)))
    return np.array([float(x) for x in (q.w, q.x, q.y, q.z)])
