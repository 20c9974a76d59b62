"""Frames: <origin> elements, and the composition of poses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....collision.poses import Array, from_axis_angle, quaternion_product, rotation_matrix
from .nodes import XmlElement

NOWHERE = (0.0, 0.0, 0.0)


class Pose(NamedTuple):
    """position (3,) [m] and quaternion (4,) w x y z of a frame in another."""

    position: Array
    quaternion: Array

    def __matmul__(self, other: Pose) -> Pose:
        """The composition: the pose `other` is relative to this one."""
        rotation = rotation_matrix(self.quaternion) @ other.position
        return Pose(self.position + rotation, quaternion_product(self.quaternion, other.quaternion))


def translation(by: Array) -> Pose:
    return Pose(by, np.eye(4)[0])


def rotation(axis: Array, angle: float) -> Pose:
    return Pose(np.zeros(3), np.array(from_axis_angle((axis[0], axis[1], axis[2]), angle)))


def read_origin(node: XmlElement) -> Pose:
    """The pose of a joint, inertial or collision. rpy [rad]: rotations about the outer x, y and z, in order."""
    origin = node.first("origin")
    if origin is None:
        return translation(np.zeros(3))
    roll, pitch, yaw = (rotation(np.eye(3)[k], angle) for k, angle in enumerate(origin.numbers("rpy", 3, NOWHERE)))
    return translation(np.array(origin.numbers("xyz", 3, NOWHERE))) @ yaw @ pitch @ roll
