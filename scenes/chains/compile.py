"""Compilation of a ChainSpec to (Chain, ChainState), which rejects impossible chains; see `compile_scene`.

Everything is computed in numpy float64 and cast at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...collision.poses import Array
from ...engine.planar.model import OPEN, Chain, ChainState
from ..compiling import check
from .spec import ChainJoint, ChainSpec, Ground
from .start import Start, start

TOUCH = 1e-9  # part of the chain's length: a joint this near a ground is on it


def compile_chain(spec: ChainSpec, kind: np.dtype) -> tuple[Chain, ChainState]:
    """Compile a chain.  kind: dtype of the numbers."""

    def cast(x: Array) -> jax.Array:
        return jnp.asarray(x, {"f": kind, "i": jnp.int32, "b": bool}[x.dtype.kind])

    return jax.tree.map(cast, checked_chain(spec))


def checked_chain(spec: ChainSpec) -> tuple[Any, Any]:
    """Check a chain; return it and its state in numpy, float64."""
    joints = _joints(spec)
    n, room = len(joints), _room(spec)
    gravity = check.numbers("chain", "gravity", spec.gravity, (2,), "m/s^2")
    begin = start(spec, n)
    rows = [_row(k, joint, last=k == n - 1) for k, joint in enumerate(joints)]
    grounds = [_ground(k, ground) for k, ground in enumerate(_grounds(spec))]
    near = TOUCH * (begin.lengths.sum() + 1)
    stuck = [_stuck(k, joint, begin, grounds, near) for k, joint in enumerate(joints)]
    for k, row in enumerate(rows):
        _check_start(k, row, begin, grounds, near)

    def pad(x: Any, fill: float, size: int = room) -> Array:
        x = np.asarray(x, type(fill))
        return np.concatenate([x, np.full((size - len(x), *x.shape[1:]), fill)])

    columns = {name: [getattr(row, name) for row in rows] for name in _Row._fields}
    arrays: dict[str, Any] = {name: pad(columns[name], False) for name in ("guided", "active")}
    arrays |= {name: pad(columns[name], 0.0) for name in ("line", "roll", "drag")}
    arrays |= {"mass": pad(columns["mass"], 1.0), "length": pad(begin.lengths, 1.0, room - 1)}
    arrays |= {"lower": pad(columns["lower"], -np.inf), "upper": pad(columns["upper"], np.inf)}
    arrays["ground"] = np.array([point for point, _ in grounds], float).reshape(-1, 2)
    arrays["normal"] = np.array([normal for _, normal in grounds], float).reshape(-1, 2)
    chain = Chain(**arrays, gravity=gravity, joints=np.array(n))  # type: ignore[arg-type]
    begun: dict[str, Any] = {"x": pad(begin.x, 0.0), "v": pad(begin.v, 0.0), "t": np.array(0.0)}
    state = ChainState(**begun, stuck=pad(stuck, -1), shut=np.full(room, OPEN))  # type: ignore[arg-type]
    return chain, state


class _Row(NamedTuple):
    """One joint, checked."""

    mass: float
    guided: bool
    line: Array
    active: bool
    lower: float
    upper: float
    roll: float
    drag: float


def _joints(spec: ChainSpec) -> tuple[ChainJoint, ...]:
    fix = "give ChainJoints, such as joints=[ChainJoint(), ChainJoint()], or use ChainSpec.of(lengths)"
    if not isinstance(spec.joints, tuple) or not all(isinstance(joint, ChainJoint) for joint in spec.joints):
        check.reject("chain", "joints", spec.joints, f"it must be a list of ChainJoints: {fix}")
    if not spec.joints:
        check.reject("chain", "joints", spec.joints, f"there must be at least one: {fix}")
    return spec.joints


def _room(spec: ChainSpec) -> int:
    n = len(spec.joints)
    if spec.room is None:
        return n
    if type(spec.room) is not int or spec.room < n:
        fix = f"give at least {n}, or None for just as many"
        check.reject(
            "chain", "room", spec.room, f"it must be a whole number, not below the {n} joints there are: {fix}"
        )
    return spec.room


def _row(k: int, joint: ChainJoint, last: bool) -> _Row:
    where = f"joint {k}"
    mass = float(check.positive(where, "mass", joint.mass, unit="kg"))
    lower, upper = _limits(where, joint.limits)
    roll = float(check.non_negative(where, "roll", joint.roll, unit="N m s"))
    drag = float(check.non_negative(where, "drag", joint.drag, unit="kg/m"))
    for field in ("guided", "active"):
        if not isinstance(getattr(joint, field), bool):
            check.reject(where, field, getattr(joint, field), "it must be a yes or a no: give True or False")
    given = {"active": joint.active, "limits": joint.limits is not None, "roll": roll > 0}
    for field in (field for field, there in given.items() if last and there):
        fix = "leave it out, or give it to the joint before"
        check.reject(where, field, getattr(joint, field), f"the last joint has no angle: {fix}")
    line = np.zeros(2)
    if joint.line is not None:
        line = _unit(where, "line", joint.line)
        if joint.guided:
            fix = "leave out line, or guided"
            check.reject(where, "line", joint.line, f"a guided joint goes where it is led, not along a line: {fix}")
    return _Row(mass, joint.guided, line, joint.active, lower, upper, roll, drag)


def _limits(where: str, limits: object) -> tuple[float, float]:
    if limits is None:
        return -np.inf, np.inf
    lower, upper = check.any_numbers(where, "limits", limits, (2,), "rad").tolist()
    if lower >= upper:
        check.reject(where, "limits", limits, "the lower must lie below the upper: give (lower, upper)")
    for end in (lower, upper):
        if np.isfinite(end) and abs(end) > np.pi:
            fix = "give angles from -pi to pi in rad, inf where there is no end"
            check.reject(where, "limits", limits, f"angles of joints are told within half a turn: {fix}")
    return lower, upper


def _unit(where: str, field: str, value: object) -> Array:
    vector = check.numbers(where, field, value, (2,))
    length = np.linalg.norm(vector)
    if length < 1e-12:
        check.reject(where, field, value, "it must not be zero: give a direction such as (0, 1)")
    return vector / length


def _grounds(spec: ChainSpec) -> tuple[Ground, ...]:
    if not isinstance(spec.grounds, tuple) or not all(isinstance(ground, Ground) for ground in spec.grounds):
        fix = "give grounds=[Ground(point, normal)]"
        check.reject("chain", "grounds", spec.grounds, f"it must be a list of Grounds: {fix}")
    return spec.grounds


def _ground(k: int, ground: Ground) -> tuple[Array, Array]:
    """Point and unit normal."""
    where = f"ground {k}"
    return check.numbers(where, "point", ground.point, (2,), "m"), _unit(where, "normal", ground.normal)


def _stuck(k: int, joint: ChainJoint, begin: Start, grounds: list[tuple[Array, Array]], near: float) -> int:
    """Index of the ground the joint sticks in, -1 for none."""
    if joint.stuck is None:
        return -1
    where, known = f"joint {k}", f"0 to {len(grounds) - 1}" if grounds else "none"
    if type(joint.stuck) is not int or not 0 <= joint.stuck < len(grounds):
        check.reject(where, "stuck", joint.stuck, f"it must be the number of a ground: there are {known}")
    if joint.guided:
        check.reject(where, "stuck", joint.stuck, "a guided joint cannot stick: leave out stuck, or guided")
    point, normal = grounds[joint.stuck]
    height = float(normal @ (begin.x[k] - point))
    if abs(height) > near:
        fix = "let the ground pass through it, or leave out stuck"
        check.reject(where, "stuck", joint.stuck, f"the joint is {height:.6g} m above that ground: {fix}")
    if np.linalg.norm(begin.v[k]) > near:
        check.reject(where, "velocity", begin.v[k], "what sticks does not move: let it rest, or leave out stuck")
    return joint.stuck


def _check_start(k: int, row: _Row, begin: Start, grounds: list[tuple[Array, Array]], near: float) -> None:
    """Check that the joint starts above the grounds, on its line and between its limits."""
    where = f"joint {k}"
    for number, (point, normal) in enumerate(grounds):
        height = float(normal @ (begin.x[k] - point))
        if height < -near:
            must = f"it is {-height:.6g} m below ground {number}: lift the chain, or lower the ground"
            check.reject(where, "position", begin.x[k], must)
    across = float(row.line @ begin.v[k])
    if abs(across) > 1e-6 * np.linalg.norm(begin.v[k]):
        fix = "give a velocity along the line, or leave out line"
        check.reject(where, "velocity", begin.v[k], f"{across:.6g} m/s of it lead off the joint's line: {fix}")
    if k < len(begin.angles):
        angle = float(begin.angles[k])
        if not row.lower - 1e-9 <= angle <= row.upper + 1e-9:
            fix = "start between them, or widen the limits"
            must = f"it must lie in the limits, {row.lower:.6g} to {row.upper:.6g} rad: {fix}"
            check.reject(where, "angle", angle, must)
