"""Checked joints: axes, the numbers of every dof, and the start of the joint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...collision.plain import Numbers
from ...collision.poses import Array, rotation_from_z, rotation_matrix
from ...engine.joints import JOINTS
from ..joint_specs import Joint, Motor
from . import check

X, Z = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
QUATERNION_START = {"spherical": 0, "floating": 3}  # index of the quaternion's first number in q


@dataclass(frozen=True)
class JointRow:
    """A joint's part of the model, fields as in Model; `dofs` holds its (nv,) arrays by field name."""

    kind: str
    axis: Array
    axis2: Array
    pitch: float
    dofs: dict[str, Array]


def joint_row(where: str, joint: Joint) -> JointRow:
    kind = getattr(joint, "kind", None)
    if kind not in JOINTS or isinstance(joint, type):
        check.reject(where, "joint", joint, f"it must be one of {', '.join(JOINTS)}: e.g. joint=Revolute((0, 0, 1))")
    where = f"{where}, joint ({kind})"
    axis, axis2 = _axes(where, joint)
    dofs = _passive(where, joint) | _motors(where, joint) | _limits(where, joint)
    return JointRow(kind, axis, axis2, check.number(where, "pitch", getattr(joint, "pitch", 0.0), "m/rad"), dofs)


def _axes(where: str, joint: Any) -> tuple[Array, Array]:
    """axis, and axis2: the given one, or the image of x under the smallest rotation that takes z to axis."""
    axis = check.direction(where, "axis", getattr(joint, "axis", Z))
    given = getattr(joint, "axis2", None)
    if given is None:
        return axis, rotation_matrix(rotation_from_z(axis)) @ X
    axis2 = check.direction(where, "axis2", given)
    if np.linalg.norm(np.cross(axis, axis2)) < 1e-6:
        check.reject(where, "axis2", given, f"it must not be parallel to axis {joint.axis}: turn it away from axis")
    if joint.kind == "planar":
        axis2 = axis2 - axis * (axis @ axis2)
        axis2 = axis2 / np.linalg.norm(axis2)
    return axis, axis2


def _passive(where: str, joint: Joint) -> dict[str, Array]:
    names = ("damping", "armature", "loss", "stiffness")
    values = {name: _per_dof(where, joint, name, getattr(joint, name)) for name in names}
    for name, value in values.items():
        if (value < 0).any():
            check.reject(where, name, getattr(joint, name), "it must not be negative: give 0 for none")
    for name, thing in (("stiffness", "spring"), ("armature", "rotor")):
        if joint.kind == "floating" and values[name].any():
            check.reject(where, name, getattr(joint, name), f"a floating joint has no {thing}: leave it out")
    return values | {"rest": _per_dof(where, joint, "rest", joint.rest)}


def _per_dof(where: str, joint: Joint, field: str, value: Numbers, infinite: bool = False) -> Array:
    """Numbers (nv,) from one number for all dofs, or one for each."""
    nv = JOINTS[joint.kind].nv
    read = check.any_numbers if infinite else check.numbers
    array = read(where, field, value, () if np.ndim(value) == 0 else (nv,))
    if nv == 0 and np.any(array) and np.isfinite(array).all():
        check.reject(where, field, value, "a fixed joint has no degree of freedom: leave it out")
    return np.broadcast_to(array, (nv,)).copy()


def _motors(where: str, joint: Joint) -> dict[str, Array]:
    """gain, kp, kd, effort and target of each dof: one motor drives all dofs, or there is one per dof."""
    nv = JOINTS[joint.kind].nv
    motors = joint.motor if isinstance(joint.motor, tuple) else (joint.motor,) * nv
    if len(motors) != nv:
        check.reject(
            where, "motor", joint.motor, f"there must be {nv}, one a dof, not {len(motors)}: use None for no motor"
        )
    if nv == 0 and joint.motor is not None:
        check.reject(where, "motor", joint.motor, "a fixed joint has no degree of freedom: leave it out")
    made = {id(motor): _motor(where, joint, motor) for motor in motors}  # mostly one for all
    rows = [made[id(motor)] for motor in motors]
    names = ("gain", "kp", "kd", "effort", "target")
    return {f"motor_{name}": np.array([row[name][dof] for dof, row in enumerate(rows)]) for name in names}


def _motor(where: str, joint: Joint, motor: object) -> dict[str, Array]:
    """One motor's numbers for every dof of the joint."""
    if motor is None:
        motor = Motor()
    if not isinstance(motor, Motor):
        check.reject(where, "motor", motor, 'it must be a Motor: e.g. Motor("position", kp=100.0, kd=10.0)')
    if motor.kind not in _GAINS:
        check.reject_name(where, "motor.kind", motor.kind, _GAINS, f"it must be one of {', '.join(_GAINS)}")
    needs, takes = _GAINS[motor.kind]
    gains = {}
    for name in ("kp", "kd"):
        value = getattr(motor, name)
        gains[name] = _per_dof(where, joint, f"motor.{name}", 0.0 if value is None else value, infinite=name == "kd")
        if (gains[name] < 0).any() or (name == needs and not (gains[name] > 0).all()):
            check.reject(where, f"motor.{name}", value, f"a {motor.kind} motor needs it positive: give {name}")
        if name not in takes and value is not None:
            check.reject(
                where, f"motor.{name}", value, f"a {motor.kind} motor takes none: leave it out, or change kind"
            )
    if joint.kind == "floating" and motor.kind == "position":
        check.reject(where, "motor.kind", motor.kind, 'a floating joint takes no position motor: use "velocity"')
    effort, rigid = _per_dof(where, joint, "motor.effort", motor.effort, infinite=True), np.isinf(gains["kd"])
    if not (effort > 0).all():
        check.reject(where, "motor.effort", motor.effort, "it must be positive: give N m or N, or leave it out")
    if rigid.any() and (motor.kind != "velocity" or joint.kind == "floating"):
        check.reject(where, "motor.kd", motor.kd, "only a velocity motor between two links may be rigid: give a number")
    if not np.isfinite(effort[rigid]).all():
        check.reject(where, "motor.effort", motor.effort, "a rigid motor (kd infinite) gives what it takes: bound it")
    gain = gains[needs] if needs else np.ones_like(effort)
    return gains | {"gain": gain, "effort": effort, "target": _per_dof(where, joint, "motor.target", motor.target)}


# kind of motor -> the gain it needs (which is also the gain of u), the gains it takes
_GAINS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "torque": (None, ()),
    "position": ("kp", ("kp", "kd")),
    "velocity": ("kd", ("kd",)),
}


def _limits(where: str, joint: Joint) -> dict[str, Array]:
    nv = JOINTS[joint.kind].nv
    given = getattr(joint, "limits", None)
    pairs = (None,) * nv if given is None else (given,) if nv == 1 else given
    if not isinstance(pairs, tuple) or len(pairs) != nv or not all(p is None or isinstance(p, tuple) for p in pairs):
        check.reject(where, "limits", given, f"there must be {nv} of (lower, upper), one a dof: use None for no limit")
    lower, upper = np.full(nv, -np.inf), np.full(nv, np.inf)
    for dof, pair in enumerate(pairs):
        if pair is None:
            continue
        lower[dof], upper[dof] = check.any_numbers(where, "limits", pair, (2,), "rad or m")
        if not lower[dof] < upper[dof]:
            check.reject(where, "limits", pair, "lower must be less than upper: swap them, or use a Fixed joint")
    bounce = getattr(joint, "restitution", 0.0)
    restitution = _per_dof(where, joint, "restitution", bounce)
    check.fraction(where, "restitution", bounce, np.shape(bounce))
    return {"lower": lower, "upper": upper, "limit_restitution": restitution}


def start_q(where: str, row: JointRow, q0: Numbers | None) -> Array:
    """Coordinates (nq,) at the start, inside the limits; quaternions made unit."""
    table = JOINTS[row.kind]
    if q0 is None:
        q = np.array(table.neutral, float)
    else:
        q = _start(where, "q0", q0, table.nq, "rad or m")
    if row.kind in QUATERNION_START:
        first = QUATERNION_START[row.kind]
        q = np.concatenate([q[:first], check.quaternion(where, "q0 (quaternion)", q[first:])])
    elif ((q < row.dofs["lower"]) | (q > row.dofs["upper"])).any():
        lower, upper = row.dofs["lower"], row.dofs["upper"]
        shown = ", ".join(f"({a:g}, {b:g})" for a, b in zip(lower, upper, strict=True))
        must = f"it must lie within the limits {shown}: give q0 inside, or widen them"
        check.reject(where, "q0", 0.0 if q0 is None else q0, must)
    return q


def start_v(where: str, row: JointRow, v0: Numbers | None) -> Array:
    """Velocities (nv,) at the start."""
    nv = JOINTS[row.kind].nv
    return np.zeros(nv) if v0 is None else _start(where, "v0", v0, nv, "rad/s or m/s")


def _start(where: str, field: str, value: Numbers, n: int, unit: str) -> Array:
    """Numbers (n,); a single one may be a plain number."""
    return check.numbers(where, field, value, () if n == 1 and np.ndim(value) == 0 else (n,), unit).reshape(n)
