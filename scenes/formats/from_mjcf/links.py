"""Bodies and joints of a compiled MJCF model as links.

MuJoCo lets a body move by several joints, one after the other, each about a point of the body. Carom gives a link one
joint, at its origin. So a body becomes a chain of links, massless except the last, and the origin of a link is the
point that its joint rotates about. The frame of a joint with a ref is rotated, or shifted, back by it: q is qpos.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ....collision.mass import MassProperties, combine
from ....collision.poses import Array, from_axis_angle, quaternion_product, rotation_matrix
from ....collision.shapes import Shape
from ...joint_specs import Fixed, Floating, Joint, Prismatic, Revolute, Spherical
from ...spec import LinkSpec
from .compiled import BALL, FREE, HINGE, SLIDE, Compiled
from .ledger import Ledger
from .motors import ActuatorEffect

IDENTITY = np.eye(4)[0]
NOUNS = {FREE: "free joint", BALL: "ball joint", SLIDE: "slide joint", HINGE: "hinge joint"}


class BodyFrame(NamedTuple):
    """A body's frame: position (3,) [m] and quaternion (4,) in the frame of the link it belongs to, or of the world."""

    owner: str
    position: Array = np.zeros(3)
    quaternion: Array = IDENTITY

    def compose(self, position: Array, quaternion: Array) -> BodyFrame:
        """The frame that has this pose in the body's frame."""
        origin = self.position + rotation_matrix(self.quaternion) @ position
        return BodyFrame(self.owner, origin, quaternion_product(self.quaternion, quaternion))


def read_links(
    file: Compiled, drives: dict[int, ActuatorEffect], shapes: Callable[[int, Array], list[Shape]], ledger: Ledger
) -> tuple[tuple[LinkSpec, ...], list[BodyFrame]]:
    """Links of all bodies that move, parents first, and the pose of every body.

    drives: effects of actuators by joint.  shapes: a function of a body and the link's origin in its axes (3,).
    """
    m, links, frames = file.m, [], [BodyFrame("world")]
    for b in range(1, m.nbody):
        frame = frames[m.body_parentid[b]].compose(m.body_pos[b], m.body_quat[b])
        if not file.moves(b):
            frames.append(frame)
            if m.body_mocapid[b] >= 0:
                ledger.note("approximated", "mocap body", file.name("body", b), "it stands still, where it starts")
            continue
        at = np.zeros(3)  # origin of the link so far, in the body's axes
        chain: list[dict[str, Any]] = []
        for j in range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]):
            fields, at = _joint_fields(file, j, frame, at, ledger)
            joint = _joint(file, j, drives.get(j, ActuatorEffect()), ledger)
            name = f"{file.name('body', b)}/{file.name('joint', j)}"
            chain.append({"name": name, "parent": frame.owner, "joint": joint, "mass": 0.0} | fields)
            frame = BodyFrame(name)
            ledger.note("taken", NOUNS[m.jnt_type[j]], file.name("joint", j))
        if not chain:
            chain = [{"parent": frame.owner, "joint": Fixed()} | _pose(frame)]
        chain[-1] |= {"name": file.name("body", b), "shapes": shapes(b, at)} | _mass(file, b, at)
        links += [LinkSpec(**fields) for fields in chain]
        frames.append(BodyFrame(links[-1].name, -at))
        ledger.note("taken", "body", links[-1].name)
    return tuple(links), frames


def _pose(frame: BodyFrame) -> dict[str, Any]:
    return {"position": frame.position, "quaternion": frame.quaternion}


def _mass(file: Compiled, b: int, origin: Array) -> dict[str, Any]:
    """Mass, com and inertia in the frame of the link, whose origin is given in the body's axes.

    A free link must have mass: bodies that are welded to a massless one give it all of theirs.
    """
    if _lends(file, b):
        return {"mass": 0.0}
    parts = [_body_mass(file, b)]
    if not parts[0].mass and _is_free(file, b):
        parts = [_in_root_frame(file, k, b) for k in range(b + 1, file.m.nbody) if file.m.body_weldid[k] == b]
    parts = [part for part in parts if part.mass]
    if not parts:
        return {"mass": 0.0}
    whole = combine(parts)
    return {"mass": whole.mass, "com": whole.com - origin, "inertia": (whole.inertia + whole.inertia.T) / 2}


def _is_free(file: Compiled, b: int) -> bool:
    return file.m.body_jntnum[b] > 0 and file.m.jnt_type[file.m.body_jntadr[b]] == FREE


def _lends(file: Compiled, b: int) -> bool:
    root = file.m.body_weldid[b]
    return root != b and not file.m.body_mass[root] and _is_free(file, root)


def _body_mass(file: Compiled, b: int) -> MassProperties:
    """The mass of a body in its own frame."""
    own = MassProperties(float(file.m.body_mass[b]), np.zeros(3), np.diag(file.m.body_inertia[b]))
    return own.in_frame(file.m.body_ipos[b], file.m.body_iquat[b])


def _in_root_frame(file: Compiled, b: int, root: int) -> MassProperties:
    """Mass properties of a body in the frame of the body that it is welded to."""
    mass = _body_mass(file, b)
    while b != root:
        mass = mass.in_frame(file.m.body_pos[b], file.m.body_quat[b])
        b = file.m.body_parentid[b]
    return mass


def _joint_fields(file: Compiled, j: int, frame: BodyFrame, at: Array, ledger: Ledger) -> tuple[dict[str, Any], Array]:
    """Pose of the joint's frame and start of its link; the link's origin in the body's axes (3,).

    frame, at: the body's frame before the joint moves it (or the link so far, and its origin in the body's axes).
    """
    m, kind = file.m, file.m.jnt_type[j]
    qpos = file.qpos[m.jnt_qposadr[j] :]
    qvel = file.qvel[m.jnt_dofadr[j] :]
    if kind == FREE:
        turning = rotation_matrix(qpos[3:7]) @ qvel[3:6]  # in MuJoCo it is in the body's axes, and last
        v0 = np.concatenate([turning, qvel[:3]])
        return {"position": qpos[:3], "quaternion": qpos[3:7], "v0": v0}, at
    axis, ref = m.jnt_axis[j], m.qpos0[m.jnt_qposadr[j]]
    if kind == SLIDE:
        return _pose(frame.compose(-ref * axis, IDENTITY)) | _start(file, j, ledger), at
    step = m.jnt_pos[j] - at
    if kind == HINGE:
        return _pose(frame.compose(step, _rotation_about(axis, -ref))) | _start(file, j, ledger), m.jnt_pos[j]
    return _pose(frame.compose(step, IDENTITY)) | {"q0": qpos[:4], "v0": qvel[:3]}, m.jnt_pos[j]


def _rotation_about(axis: Array, angle: float) -> Array:
    return np.array(from_axis_angle(tuple(axis), angle))


def _start(file: Compiled, j: int, ledger: Ledger) -> dict[str, Any]:
    """q0 and v0 of a hinge or a slide, q0 within its limits."""
    m = file.m
    q, v = file.qpos[m.jnt_qposadr[j]], file.qvel[m.jnt_dofadr[j]]
    limits = _limits(file, j)
    inside = q if limits is None else np.clip(q, *limits)
    if inside != q:
        why = "the start lies outside its range: it starts at the nearer limit"
        ledger.note("approximated", "start of joint", file.name("joint", j), why)
    return {"q0": inside, "v0": v}


def _limits(file: Compiled, j: int) -> Array | None:
    return file.m.jnt_range[j] if file.m.jnt_limited[j] and not {"limit", "constraint"} & file.off else None


def _joint(file: Compiled, j: int, drive: ActuatorEffect, ledger: Ledger) -> Joint:
    m, dof = file.m, file.m.jnt_dofadr[j]
    common: dict[str, Any] = {"damping": drive.damping, "loss": 0.0}
    if not {"damper", "passive"} & file.off:
        common["damping"] += max(m.dof_damping[dof], 0.0)
    if not {"frictionloss", "constraint"} & file.off:
        common["loss"] = m.dof_frictionloss[dof]
    if m.jnt_type[j] == FREE:
        return Floating(**common)
    common |= {"armature": m.dof_armature[dof] + drive.armature, "motor": drive.motor}
    if m.jnt_stiffness[j] and not {"spring", "passive"} & file.off:
        common["stiffness"] = m.jnt_stiffness[j]
    limits, name = _limits(file, j), file.name("joint", j)
    if m.jnt_type[j] == BALL:
        if limits is not None:
            ledger.note("approximated", "limit of ball joint", name, "left out: Carom's ball joints turn without limit")
        return Spherical(**common)
    if limits is not None and m.jnt_margin[j] > 0:
        ledger.note("approximated", "margin of joint", name, "left out: its limits act where they are")
    if "stiffness" in common:
        common["rest"] = m.qpos_spring[m.jnt_qposadr[j]]
    kind = Revolute if m.jnt_type[j] == HINGE else Prismatic
    return kind(axis=m.jnt_axis[j], limits=None if limits is None else limits, **common)
