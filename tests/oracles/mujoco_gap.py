"""MuJoCo's signed distance of two geoms (`mj_geomDistance`), for spheres, capsules, boxes, cylinders and ellipsoids.

Measured against `minkowski.gap`: 1e-9 m on both sides of contact at unit size, except a capsule in overlap with a box,
whose depth MuJoCo takes from its own contact routine: off by up to 1 m when deep.
"""

# pyright does not see the names of a compiled module
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np

from .minkowski import Solid
from .mujoco_model import digits

GEOMS = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "ellipsoid": 3}  # how many numbers a size has
FAR = 1e3  # [m] beyond which MuJoCo does not look


def gap(a: Solid, b: Solid) -> float:
    """Signed [m]: the distance, or minus the depth of penetration."""
    options = '<option ccd_iterations="500" ccd_tolerance="1e-12"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{options}<worldbody>{_body(a)}{_body(b)}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return float(mujoco.mj_geomDistance(model, data, 0, 1, FAR, np.zeros(6)))


def _body(s: Solid) -> str:
    pose = f'pos="{digits(s.position)}" quat="{digits(s.quaternion)}"'
    return f'<body {pose}><freejoint/><geom type="{s.kind}" size="{digits(s.size[: GEOMS[s.kind]])}"/></body>'
