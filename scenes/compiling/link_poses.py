"""Forward kinematics in numpy, by the table of joints: nothing is compiled for a single evaluation."""

from __future__ import annotations

import numpy as np

from ...collision.poses import Array, rotation_matrix
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Mat3, Vec3
from ...engine.joints import JOINTS, JointParams
from ...engine.model import Model


def link_poses(model: Model, q: Array) -> tuple[Array, Array]:
    """Positions (nl, 3) [m] and rotations (nl, 3, 3) of the links at the coordinates q (nq,)."""
    topology = model.topology
    numbers = ("joint_position", "joint_quaternion", "axis", "axis2", "pitch")
    position, quaternion, axis, axis2, pitch = (np.asarray(getattr(model, name), float) for name in numbers)
    positions, rotations = np.zeros((topology.n_links, 3)), np.tile(np.eye(3), (topology.n_links, 1, 1))
    q = np.asarray(q, float)
    for k, (kind, parent) in enumerate(zip(topology.joints, topology.parents, strict=True)):
        own = q[topology.q_start[k] : topology.q_start[k + 1]]
        if kind == "floating":
            positions[k], rotations[k] = own[:3], rotation_matrix(own[3:])
            continue
        P, at = (rotations[parent], positions[parent]) if parent >= 0 else (np.eye(3), np.zeros(3))
        frame = Mat3(*(P @ np.reshape(_rows(Quat(*quaternion[k]).matrix()), (3, 3))).ravel())
        params = JointParams(Vec3(*axis[k]), Vec3(*axis2[k]), pitch[k])
        angles = [(np.cos(x), np.sin(x)) for x in own[: JOINTS[kind].angles]]
        R, shift, _ = JOINTS[kind].move(frame, params, tuple(own), tuple(angles))
        rotations[k] = np.reshape(_rows(R), (3, 3))
        positions[k] = at + P @ position[k] + np.array([float(x) for x in (Vec3(0.0, 0.0, 0.0) + shift).xyz])
    return positions, rotations


def _rows(m: Mat3) -> list[float]:
    return [float(x) for row in m.rows for x in row.xyz]
