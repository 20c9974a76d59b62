"""A compiled MJCF model, which the reader's parts share; mujoco itself is not imported here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....collision.poses import Array

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint


@dataclass(frozen=True)
class Compiled:
    """A compiled file.  m: the mujoco.MjModel.  off, on: features that the file's flags turn off or on, e.g. "contact".

    qpos (nq,), qvel (nv,), ctrl (nu,): its start, in MuJoCo's conventions.
    """

    m: Any
    off: frozenset[str]
    on: frozenset[str]
    qpos: Array
    qvel: Array
    ctrl: Array

    def name(self, kind: str, i: int) -> str:
        """The file's name of a body, joint, geom, actuator, tendon or equality; kind and number if it has none."""
        return getattr(self.m, kind)(int(i)).name or f"{kind} {i}"

    def value(self, field: str, i: int) -> Any:
        """An entry of one of the model's arrays; 0 if this version of mujoco does not have the array."""
        array = getattr(self.m, field, None)
        return 0.0 if array is None or len(array) <= i else array[i]

    def moves(self, body: int) -> bool:
        """Return whether some joint is between the body and the world. MuJoCo does not weld mocap bodies to it."""
        root = self.m.body_weldid[body]
        return bool(root) and self.m.body_mocapid[root] < 0

    def link_of(self, joint: int) -> str:
        """The link that the joint moves: a body's last joint moves the body, those before it move massless links."""
        b = self.m.jnt_bodyid[joint]
        body = self.name("body", b)
        is_last = joint == self.m.body_jntadr[b] + self.m.body_jntnum[b] - 1
        return body if is_last else f"{body}/{self.name('joint', joint)}"
