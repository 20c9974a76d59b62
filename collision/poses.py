"""Rotations in numpy float64 for the host: mass properties and the compile step.

Kernels use `engine.algebra`; here a scene is prepared once, in full precision whatever its dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def rotation_matrix(quaternion: Array) -> Array:
    """Matrix (3, 3) of a unit quaternion w x y z."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def rotation_from_z(direction: Array) -> Array:
    """Quaternion of the smallest rotation that takes z to a unit direction; for -z half a turn about x."""
    x, y, z = direction
    if z < -1 + 1e-12:
        return np.array([0.0, 1.0, 0.0, 0.0])
    quaternion = np.array([1 + z, -y, x, 0.0])
    return quaternion / np.linalg.norm(quaternion)


def cross(a: Array, b: Array) -> Array:
    """The product a x b (3,); numpy's takes ten times as long for two vectors."""
    (ax, ay, az), (bx, by, bz) = a, b
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def quaternion_product(a: Array, b: Array) -> Array:
    """The product a b: the rotation b followed by a."""
    scalar = a[0] * b[0] - a[1:] @ b[1:]
    return np.concatenate([[scalar], a[0] * b[1:] + b[0] * a[1:] + cross(a[1:], b[1:])])


def from_axis_angle(axis: tuple[float, float, float], angle: float) -> tuple[float, ...]:
    """Quaternion of a rotation by an angle [rad] about an axis, as plain data."""
    unit = np.asarray(axis, float) / np.linalg.norm(axis)
    return (float(np.cos(angle / 2)), *(float(np.sin(angle / 2) * c) for c in unit))
