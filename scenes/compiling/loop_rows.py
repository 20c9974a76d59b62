"""Loops, checked: their part of the topology and of the model's arrays, and the state they start from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...collision.poses import Array, quaternion_product, rotation_matrix
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Mat3
from ...engine.closures.linear import closed
from ...engine.closures.measured import dof_coordinates
from ...engine.closures.projection import projected
from ...engine.dynamics.kinematics import fk
from ...engine.model import Loop, Model
from ...engine.state import State
from ..loop_specs import Distance, Driven, Gear, Rolling, Spring
from ..spec import LoopSpec, SceneSpec
from . import check
from .joint_rows import joint_row

SHAPES = {
    "loop_position": (2, 3), "loop_quaternion": (2, 4), "loop_size": (), "loop_course": (5,), "loop_spring": (2, 4),
    "loop_stiff": (2,), "loop_damp": (2,), "loop_limits": (2, 2),
}  # fmt: skip
JOINTS = ("spherical", "revolute", "universal", "prismatic", "cylindrical", "screw", "planar", "fixed")
NO_LIMITS = np.array([(-np.inf, np.inf)] * 2)
ASSEMBLY = 10  # rounds of projection, two of Newton's turns each


def no_loops() -> dict[str, Array]:
    """The arrays of a model without loops."""
    return {name: np.zeros((0, *shape)) for name, shape in SHAPES.items()}


def with_loops(scene: SceneSpec, model: Model, state: State) -> tuple[Model, State]:
    """The model with the scene's loops, and the state moved as little as closes them."""
    if scene.baumgarte is not None:
        check.non_negative("scene", "baumgarte", scene.baumgarte, unit="1/s")
    if not scene.loops:
        return model, state
    reader = _Reader(scene, model, state)
    rows = [reader.row(spec, _who(spec, k)) for k, spec in enumerate(scene.loops)]
    hold = "projection" if scene.baumgarte is None else "baumgarte"
    topology = replace(model.topology, loops=tuple(row.loop for row in rows), hold=hold)
    arrays = {name: np.array([row.numbers[name] for row in rows]) for name in SHAPES}
    arrays["baumgarte"] = np.array(scene.baumgarte or 0.0)
    kind = model.mass.dtype
    model = model.replace(topology=topology, **{name: jnp.asarray(x, kind) for name, x in arrays.items()})
    return model, _assembled(scene, model, state)


def _who(spec: LoopSpec, number: int) -> str:
    if type(spec) is not LoopSpec:
        check.reject("scene", "loops", spec, "it must hold LoopSpec: use SceneBuilder.add_loop")
    return f"loop {number}" if spec.name is None else f'loop "{spec.name}"'


def _assembled(scene: SceneSpec, model: Model, state: State) -> State:
    """q and v that satisfy the loops: the given ones are where Newton's method starts."""
    q, v = state.q, state.v
    enough = {4: 1e-5, 8: 1e-11}[q.dtype.itemsize]
    for _ in range(ASSEMBLY):
        found = closed(model, q, v, state.t)
        off = np.abs(np.concatenate([found.error, found.rate]))
        if (off <= enough * (1 + np.abs(np.asarray(v)).max(initial=0))).all():
            return State(q, v, state.t)
        q, v = projected(model, q, v, state.t)
    first = closed(model, state.q, state.v, state.t)
    loops = [k for k, _ in _row_table(model)]
    left = np.abs(closed(model, q, v, state.t).error)
    worst = int(left.argmax()) if left.size else 0
    where = _who(scene.loops[loops[worst]], loops[worst])
    check.reject(
        where, "frame_b", scene.loops[loops[worst]].position_b,
        f"the loop must close at the start: it is {float(np.abs(first.error[worst])):.3g} m or rad off, and moving the "
        f"joints leaves {float(left[worst]):.3g}: correct q0 or the frames, or leave frame_b out",
    )  # fmt: skip


def _row_table(model: Model) -> list[tuple[int, int]]:
    from ...engine.closures.measured import row_loops

    return [(k, n) for n, k in enumerate(sorted(row_loops(model.topology)))]


@dataclass(frozen=True)
class _LoopRow:
    loop: Loop
    numbers: dict[str, Any]


class _Reader:
    """Reads loops against the model without them, as it stands at the start."""

    def __init__(self, scene: SceneSpec, model: Model, state: State) -> None:
        self.model, self.names = model, model.topology.names
        self.known = ["world", *self.names]
        self.q = np.asarray(state.q, np.float64)
        poses = fk(model, state.q)
        self.p, self.R = (np.asarray(x, np.float64) for x in poses)

    def row(self, spec: LoopSpec, where: str) -> _LoopRow:
        a, b = (self._link(where, field, getattr(spec, field)) for field in ("link_a", "link_b"))
        joint = spec.joint
        if isinstance(joint, (Gear, Driven)):
            return self._relation(where, spec, a, b)
        if a == b:
            check.reject(where, "link_b", spec.link_b, "it must be another link than link_a: name the two ends")
        frame_a = self._frame(where, "a", spec.position_a, spec.quaternion_a)
        if isinstance(joint, Rolling) and spec.position_b is None:
            frame_b = np.zeros(3), np.eye(4)[0]
        elif spec.position_b is None:
            frame_b = self._same_place(a, b, frame_a)
        else:
            frame_b = self._frame(where, "b", spec.position_b, spec.quaternion_b or (1.0, 0.0, 0.0, 0.0))
        numbers = _plain(frame_a, frame_b)
        if isinstance(joint, (Distance, Spring)):
            return self._length(where, joint, a, b, numbers)
        if isinstance(joint, Rolling):
            kind = "ball" if joint.axis is None else "disc"
            axle = np.array([1.0, 0.0, 0.0]) if joint.axis is None else check.direction(where, "axis", joint.axis)
            numbers["loop_size"] = float(check.positive(where, "radius", joint.radius, unit="m"))
            turns = _axes(axle, None), np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])  # the plane's normal is its z
            return _LoopRow(Loop(kind, a, b), _turned(numbers, *turns))
        if getattr(joint, "kind", None) not in JOINTS or isinstance(joint, type):
            kinds = ", ".join((*JOINTS, "Distance", "Spring", "Rolling", "Gear", "Driven"))
            check.reject(where, "joint", joint, f"it must be one of {kinds}: e.g. joint=Revolute((0, 1, 0))")
        return self._joint(where, joint, a, b, numbers)

    def _joint(self, where: str, joint: Any, a: int, b: int, numbers: dict[str, Any]) -> _LoopRow:
        row = joint_row(where, joint)
        for name in ("damping", "armature", "loss", "stiffness", "motor", "limits"):
            if np.any(getattr(joint, name, None)):
                fix = "give it to the tree's joint, or cut the loop elsewhere"
                check.reject(where, name, getattr(joint, name), f"a joint that closes a loop has none: {fix}")
        axes_a = axes_b = _axes(row.axis, row.axis2)
        if joint.kind == "universal":
            axes_b = _axes(row.axis2, row.axis)[:, [1, 0, 2]]
            numbers["loop_size"] = float(row.axis @ row.axis2)
        if joint.kind == "screw":
            numbers["loop_size"] = row.pitch
        return _LoopRow(Loop(joint.kind, a, b), _turned(numbers, axes_a, axes_b))

    def _length(self, where: str, joint: Any, a: int, b: int, numbers: dict[str, Any]) -> _LoopRow:
        ends = [self._world(link, at) for link, at in zip((a, b), numbers["loop_position"], strict=True)]
        length = float(np.linalg.norm(ends[0] - ends[1]))
        if joint.length is not None:
            length = float(check.positive(where, "length", joint.length, unit="m"))
        if isinstance(joint, Distance):
            if length == 0:
                check.reject(where, "length", length, "the two points must be apart: use Spherical to join them")
            numbers["loop_course"][0] = length
            return _LoopRow(Loop("distance", a, b), numbers)
        stiffness = float(check.non_negative(where, "stiffness", joint.stiffness, unit="N/m"))
        damping = float(check.non_negative(where, "damping", joint.damping, unit="N s/m"))
        numbers["loop_spring"][0] = stiffness, length, damping, 0.0
        return _LoopRow(Loop("spring", a, b, acts=True), numbers)

    def _relation(self, where: str, spec: LoopSpec, a: int, b: int) -> _LoopRow:
        joint, numbers = spec.joint, _plain()
        places = dof_coordinates(self.model.topology)
        dof_a = self._dof(where, "link_a", spec.link_a, a, joint.dof_a if isinstance(joint, Gear) else joint.dof)
        at_a = self.q[places[dof_a]]
        if isinstance(joint, Gear):
            dof_b = self._dof(where, "link_b", spec.link_b, b, joint.dof_b)
            if dof_a == dof_b:
                check.reject(where, "link_b", spec.link_b, "a gear joins two joints: name another link")
            ratio = float(check.number(where, "ratio", joint.ratio))
            numbers["loop_size"] = ratio
            offset = at_a - ratio * self.q[places[dof_b]] if joint.offset is None else joint.offset
            numbers["loop_course"][0] = float(check.number(where, "offset", offset))
            return _LoopRow(Loop("gear", a, b, (dof_a, dof_b)), numbers)
        if b != -1:
            check.reject(where, "link_b", spec.link_b, "a driven joint is that of link_a: leave link_b out")
        rest = [float(check.number(where, f, getattr(joint, f))) for f in ("rate", "amplitude", "frequency", "phase")]
        told = 0.0 if joint.function is None else float(joint.function(jnp.zeros((), self.model.mass.dtype)))
        start = at_a - rest[1] * np.sin(rest[3]) - told if joint.start is None else joint.start
        numbers["loop_course"][:] = [float(check.number(where, "start", start)), *rest]
        return _LoopRow(Loop("drive", a, b, (dof_a, -1), joint.function), numbers)

    def _dof(self, where: str, field: str, name: str, link: int, dof: int) -> int:
        topology = self.model.topology
        if link < 0:
            check.reject(where, field, name, "it must be a link with a joint, not the world: name the link")
        first, end = topology.v_start[link], topology.v_start[link + 1]
        if type(dof) is not int or not 0 <= dof < end - first:
            check.reject(where, "dof", dof, f'the joint of "{name}" has {end - first} degrees of freedom: count from 0')
        if dof_coordinates(topology)[first + dof] < 0:
            kind = topology.joints[link]
            check.reject(where, field, name, f"a {kind} joint has no single angle: use revolute or prismatic joints")
        return first + dof

    def _link(self, where: str, field: str, name: Any) -> int:
        if name not in self.known:
            check.reject_name(where, field, name, self.known, 'it must be the name of a link, or "world"')
        return self.known.index(name) - 1

    def _frame(self, where: str, end: str, position: Any, quaternion: Any) -> tuple[Array, Array]:
        at = check.numbers(where, f"frame_{end}", position, (3,), "m")
        return at, check.quaternion(where, f"frame_{end}, quaternion", quaternion)

    def _world(self, link: int, at: Array) -> Array:
        return at if link < 0 else self.p[link] + self.R[link] @ at

    def _same_place(self, a: int, b: int, frame: tuple[Array, Array]) -> tuple[Array, Array]:
        """On link b the frame that coincides with this one on link a."""
        R = (np.eye(3) if a < 0 else self.R[a]) @ rotation_matrix(frame[1])
        point = self._world(a, frame[0])
        if b < 0:
            return point, _quaternion(R)
        return self.R[b].T @ (point - self.p[b]), _quaternion(self.R[b].T @ R)


def _plain(*frames: tuple[Array, Array]) -> dict[str, Any]:
    numbers = {name: np.zeros(shape) for name, shape in SHAPES.items()} | {"loop_limits": NO_LIMITS}
    numbers["loop_quaternion"][:, 0] = 1.0
    for k, (position, quaternion) in enumerate(frames):
        numbers["loop_position"][k], numbers["loop_quaternion"][k] = position, quaternion
    return numbers


def _axes(first: Array, second: Array | None) -> Array:
    """A rotation whose x axis is `first`, and whose y axis is as near `second` as can be."""
    if second is None:
        second = np.eye(3)[int(np.abs(first).argmin())]
    y = second - first * (first @ second)
    y = y / np.linalg.norm(y)
    return np.stack([first, y, np.cross(first, y)], 1)


def _turned(numbers: dict[str, Any], by_a: Array, by_b: Array) -> dict[str, Any]:
    """The frames turned so that their x axes are the joint's."""
    turned = [
        quaternion_product(q, _quaternion(R)) for q, R in zip(numbers["loop_quaternion"], (by_a, by_b), strict=True)
    ]
    return numbers | {"loop_quaternion": np.array(turned)}


def _quaternion(R: Array) -> Array:
    q = Quat.from_matrix(Mat3(*(R.reshape(9))))
    return np.array([float(x) for x in (q.w, q.x, q.y, q.z)])
