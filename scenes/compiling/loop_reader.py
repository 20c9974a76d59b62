"""One loop, checked: its part of the topology and of the model's arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...collision.plain import Numbers
from ...collision.poses import Array, rotation_matrix
from ...engine.loops.evaluation import dof_coordinates
from ...engine.model import Model
from ...engine.state import State
from ...engine.topology import Loop
from ..joint_specs import Joint
from ..loop_specs import Distance, Driven, Gear, Rolling, Spring
from ..spec import LoopSpec
from . import check
from .joint_rows import joint_row
from .link_poses import link_poses
from .loop_frames import axes, axes_to, plain, quaternion_of, rotate_frames

JOINTS = ("spherical", "revolute", "universal", "prismatic", "cylindrical", "screw", "planar", "fixed")
OTHERS = (Distance, Spring, Rolling, Gear, Driven)
OF_TREES = ("damping", "armature", "loss", "stiffness", "rest", "motor", "limits", "restitution")
PLANE = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])  # its x axis is z: the plane's normal
IDENTITY = np.eye(4)[0]


@dataclass(frozen=True)
class LoopRow:
    """A checked loop.  loop: its part of the topology.  numbers: its parameters, by their names in Model."""

    loop: Loop
    numbers: dict[str, Any]


class LoopReader:
    """Reads loops against the model without loops, at its start."""

    def __init__(self, model: Model, state: State) -> None:
        self.topology, self.kind = model.topology, model.mass.dtype
        self.known = ["world", *model.topology.names]
        self.coordinates = dof_coordinates(model.topology)
        self.q = np.asarray(state.q, np.float64)
        self.p, self.R = link_poses(model, self.q)

    def row(self, spec: LoopSpec, where: str) -> LoopRow:
        row = self._row(spec, where)
        if spec.active is None:
            return row
        if type(spec.active) is not bool:
            check.reject(where, "active", spec.active, "it must be True or False, or None for one that always holds")
        if isinstance(spec.joint, (Gear, Driven)):
            check.reject(where, "active", spec.active, f"a {spec.joint.kind} always holds: leave it out")
        row.numbers["loop_active"] = float(spec.active)
        return replace(row, loop=replace(row.loop, switched=True))

    def _row(self, spec: LoopSpec, where: str) -> LoopRow:
        a, b = (self._link(where, field, getattr(spec, field)) for field in ("link_a", "link_b"))
        joint = spec.joint
        if isinstance(joint, type) or not (isinstance(joint, OTHERS) or getattr(joint, "kind", None) in JOINTS):
            kinds = ", ".join((*JOINTS, *(kind.kind for kind in OTHERS)))
            check.reject(where, "joint", joint, f"it must be one of {kinds}: e.g. joint=Revolute((0, 1, 0))")
        inner = f"{where}, joint ({joint.kind})"
        if isinstance(joint, Gear):
            return self._gear(where, inner, spec, joint, a, b)
        if isinstance(joint, Driven):
            return self._drive(where, inner, spec, joint, a, b)
        if a == b:
            check.reject(where, "link_b", spec.link_b, "it must be another link than link_a: name the two ends")
        numbers = plain(*self._frames(where, spec, a, b))
        if isinstance(joint, (Distance, Spring)):
            return self._length(inner, joint, a, b, numbers)
        if isinstance(joint, Rolling):
            return _rolling(inner, joint, a, b, numbers)
        return _joint(where, inner, joint, a, b, numbers)

    # -- ends -------------------------------------------------------------------------------------------

    def _link(self, where: str, field: str, name: str) -> int:
        if name not in self.known:
            check.reject_name(where, field, name, self.known, 'it must be the name of a link, or "world"')
        return self.known.index(name) - 1

    def _frames(self, where: str, spec: LoopSpec, a: int, b: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        frame_a = _frame(where, "a", spec.position_a, spec.quaternion_a)
        if spec.position_b is not None:
            return frame_a, _frame(where, "b", spec.position_b, spec.quaternion_b or tuple(IDENTITY))
        if spec.quaternion_b is not None:
            check.reject(where, "quaternion_b", spec.quaternion_b, "it needs a position_b: give both, or none")
        if isinstance(spec.joint, Rolling):
            return frame_a, (np.zeros(3), IDENTITY)
        if isinstance(spec.joint, Distance):
            check.reject(where, "position_b", None, "a rod needs a second point: give its place on link_b")
        R = (np.eye(3) if a < 0 else self.R[a]) @ rotation_matrix(frame_a[1])
        point = self._world(a, frame_a[0])
        if b < 0:
            return frame_a, (point, quaternion_of(R))
        return frame_a, (self.R[b].T @ (point - self.p[b]), quaternion_of(self.R[b].T @ R))

    def _world(self, link: int, at: Array) -> Array:
        return at if link < 0 else self.p[link] + self.R[link] @ at

    def _dof(self, where: str, field: str, name: str, link: int, which: str, dof: int) -> int:
        if link < 0:
            check.reject(where, field, name, "it must be a link with a joint, not the world: name the link")
        first, end = self.topology.v_start[link], self.topology.v_start[link + 1]
        if type(dof) is not int or not 0 <= dof < end - first:
            fix = "count from 0" if end > first else "name a link that moves on one"
            check.reject(where, which, dof, f'the joint of "{name}" has {end - first} degrees of freedom: {fix}')
        if self.coordinates[first + dof] < 0:
            kind = self.topology.joints[link]
            check.reject(where, field, name, f"a {kind} joint has no single angle: use revolute or prismatic joints")
        return first + dof

    # -- kinds ------------------------------------------------------------------------------------------

    def _length(self, where: str, joint: Distance | Spring, a: int, b: int, numbers: dict[str, Any]) -> LoopRow:
        ends = [self._world(link, at) for link, at in zip((a, b), numbers["loop_position"], strict=True)]
        length = float(np.linalg.norm(ends[0] - ends[1]))
        if isinstance(joint, Distance):
            if joint.length is not None:
                length = float(check.positive(where, "length", joint.length, unit="m"))
            if length == 0:
                check.reject(where, "length", length, "the two points must be apart: use Spherical to join them")
            numbers["loop_course"][0] = length
            return LoopRow(Loop("distance", a, b), numbers)
        if joint.length is not None:
            length = float(check.non_negative(where, "length", joint.length, unit="m"))
        stiffness = float(check.non_negative(where, "stiffness", joint.stiffness, unit="N/m"))
        damping = float(check.non_negative(where, "damping", joint.damping, unit="N s/m"))
        numbers["loop_spring"][0] = stiffness, length, damping, 0.0
        return LoopRow(Loop("spring", a, b, acts=True), numbers)

    def _gear(self, where: str, inner: str, spec: LoopSpec, joint: Gear, a: int, b: int) -> LoopRow:
        dof_a = self._dof(where, "link_a", spec.link_a, a, "joint.dof_a", joint.dof_a)
        dof_b = self._dof(where, "link_b", spec.link_b, b, "joint.dof_b", joint.dof_b)
        if dof_a == dof_b:
            check.reject(where, "link_b", spec.link_b, "a gear joins two joints: name another link")
        numbers, ratio = plain(), float(check.number(inner, "ratio", joint.ratio))
        if ratio == 0:
            check.reject(inner, "ratio", 0.0, "it must not be 0, which would hold link a alone: give it a Fixed joint")
        at_start = self.q[self.coordinates[dof_a]] - ratio * self.q[self.coordinates[dof_b]]
        offset = at_start if joint.offset is None else check.number(inner, "offset", joint.offset)
        numbers["loop_size"], numbers["loop_course"][0] = ratio, float(offset)
        return LoopRow(Loop("gear", a, b, (dof_a, dof_b)), numbers)

    def _drive(self, where: str, inner: str, spec: LoopSpec, joint: Driven, a: int, b: int) -> LoopRow:
        dof = self._dof(where, "link_a", spec.link_a, a, "joint.dof", joint.dof)
        if b != -1:
            check.reject(where, "link_b", spec.link_b, "a driven joint is that of link_a: leave link_b out")
        rest = [float(check.number(inner, f, getattr(joint, f))) for f in ("rate", "amplitude", "frequency", "phase")]
        at_start = (
            self.q[self.coordinates[dof]] - rest[1] * np.sin(rest[3]) - self._check_function(inner, joint.function)
        )
        start = at_start if joint.start is None else check.number(inner, "start", joint.start)
        numbers = plain()
        numbers["loop_course"][:] = [float(start), *rest]
        return LoopRow(Loop("drive", a, b, (dof, -1), joint.function), numbers)

    def _check_function(self, where: str, function: Callable[[jax.Array], jax.Array] | None) -> float:
        """A function of time at t = 0, evaluated as in the program: traced, in the model's precision."""
        if function is None:
            return 0.0
        fix = "it must give one number for one time t [s], by jax.numpy: e.g. lambda t: 0.1 * jnp.cos(3 * t)"
        if not callable(function):
            check.reject(where, "function", function, fix)
        try:
            value, rate = jax.jit(lambda t: jax.jvp(function, (t,), (jnp.ones_like(t),)))(jnp.zeros((), self.kind))
        except Exception as error:  # a user's function may raise anything
            check.reject(where, "function", function, f"{fix} ({type(error).__name__}: {str(error).splitlines()[0]})")
        if jnp.shape(value) or not (jnp.isfinite(value) & jnp.isfinite(rate)):
            check.reject(where, "function", function, f"at t = 0 it is {value}, its rate {rate}: {fix}")
        return float(value)


def _frame(where: str, end: str, position: Numbers, quaternion: Numbers) -> tuple[Array, Array]:
    at = check.numbers(where, f"position_{end}", position, (3,), "m")
    return at, check.quaternion(where, f"quaternion_{end}", quaternion)


def _rolling(where: str, joint: Rolling, a: int, b: int, numbers: dict[str, Any]) -> LoopRow:
    axle = np.eye(3)[0] if joint.axis is None else check.direction(where, "axis", joint.axis)
    numbers["loop_size"] = float(check.positive(where, "radius", joint.radius, unit="m"))
    return LoopRow(Loop("ball" if joint.axis is None else "disc", a, b), rotate_frames(numbers, axes(axle), PLANE))


def _joint(where: str, inner: str, joint: Joint, a: int, b: int, numbers: dict[str, Any]) -> LoopRow:
    row = joint_row(where, joint)
    for name in OF_TREES:
        value = getattr(joint, name, None)
        if any(value) if isinstance(value, tuple) else value:
            check.reject(inner, name, value, "what closes a loop has none: give it to a joint of the tree")
    on_a = on_b = axes(row.axis, row.axis2)
    if joint.kind == "universal":
        on_b = axes_to(row.axis2, row.axis)
        numbers["loop_size"] = float(row.axis @ row.axis2)
    if joint.kind == "screw":
        numbers["loop_size"] = row.pitch
    return LoopRow(Loop(joint.kind, a, b), rotate_frames(numbers, on_a, on_b))
