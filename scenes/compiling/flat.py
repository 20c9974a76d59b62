"""Bodies that stay in a plane of the world: their planar joint, and its start."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...collision.poses import Array, quaternion_product, rotation_matrix
from ..joint_specs import Planar
from . import check

_X, _Y, _Z = np.eye(3)
PLANES = {"xy": (_X, _Y), "xz": (_X, _Z), "yz": (_Y, _Z)}  # a turn is positive from the first towards the second
OFF = 1e-9  # [m/s, rad/s] velocity out of the plane that counts as none


def flat_joint(where: str, plane: str, position: Array, quaternion: Array) -> tuple[Planar, Array, Array, Array]:
    """The joint, the position (3,) and quaternion (4,) of its frame, and q (3,): the angle [rad] and the two
    coordinates of the world in the plane [m]. position (3,), quaternion (4,): of the body."""
    if plane not in PLANES:
        check.reject(where, "plane", plane, f"it must be one of {', '.join(PLANES)}, or None for a free body")
    x, y = PLANES[plane]
    n = np.cross(x, y)
    angle = 2 * np.arctan2(quaternion[1:] @ n, quaternion[0])
    back = np.concatenate([[np.cos(angle / 2)], -np.sin(angle / 2) * n])
    frame = quaternion_product(back, quaternion)  # the rest of the rotation: the body's attitude at angle 0
    rotation = rotation_matrix(frame)
    joint = Planar(axis=tuple(rotation.T @ n), axis2=tuple(rotation.T @ x))
    return joint, n * (n @ position), frame, np.array([angle, x @ position, y @ position])


def flat_velocity(where: str, plane: Any, velocity: Array) -> Array:
    """v (3,) of a body whose origin has the angular and linear velocity (6,); rejects motion out of the plane."""
    x, y = PLANES[plane]
    n = np.cross(x, y)
    w, v = velocity[:3], velocity[3:]
    if np.linalg.norm(np.cross(w, n)) > OFF:
        check.reject(where, "angular_velocity", w.tolist(), f"a body in the plane {plane} turns about its normal alone")
    if abs(v @ n) > OFF:
        check.reject(where, "linear_velocity", v.tolist(), f"a body in the plane {plane} does not leave it")
    return np.array([w @ n, v @ x, v @ y])
