"""Actuators of a task: motors by name, instead of a control of every degree of freedom."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...collision.plain import Numbers
from ...engine.model import Model
from ..formats.report import Actuator
from ..joint_specs import Motor
from ..spec import SceneSpec
from .task import BoxSpace


def scene_actuators(scene: SceneSpec) -> tuple[Actuator, ...]:
    """The motors of a scene in the order of its links, named after their links; "link/1" is the second of a joint.

    Inputs are the motors' own u, within the effort of a torque motor and the limits of a position motor's joint.
    """
    actuators = []
    for link in scene.links:
        joint = getattr(link, "joint", None)
        motors = getattr(joint, "motor", None)
        for dof, motor in enumerate(motors if isinstance(motors, Sequence) else [motors]):
            if motor is not None:
                name = f"{link.name}/{dof}" if isinstance(motors, Sequence) else link.name
                lower, upper = _range(motor, dof, getattr(joint, "limits", None))
                actuators.append(Actuator(name, link.name, dof, lower, upper))
    return tuple(actuators)


def _range(motor: Motor, dof: int, limits: Numbers | None) -> tuple[float, float]:
    if motor.kind == "torque":
        bound = float(np.broadcast_to(motor.effort, dof + 1)[dof])
        return -bound, bound
    if motor.kind == "position" and limits is not None and np.shape(limits) == (2,):
        lower, upper = np.asarray(limits, float)
        return float(lower), float(upper)
    return -np.inf, np.inf


def select_actuators(actuators: Sequence[Actuator], names: Sequence[str] | None, task: str) -> tuple[Actuator, ...]:
    """Actuators of the given names, in that order; all for None."""
    if names is None:
        return tuple(actuators)
    by_name = {actuator.name: actuator for actuator in actuators}
    for name in names:
        if name not in by_name:
            matches = get_close_matches(name, by_name, n=1)
            hint = f"did you mean {matches[0]!r}?" if matches else f"there are {', '.join(by_name) or 'none'}"
            raise ValueError(f"{task}: no actuator named {name!r}: {hint}")
        alike = sum(actuator.name == name for actuator in actuators)
        if alike > 1:
            raise ValueError(f"{task}: {alike} actuators are named {name!r}: give each a name of its own in the file")
        if list(names).count(name) > 1:
            raise ValueError(f"{task}: actuators names {name!r} twice: name each actuator once")
    return tuple(by_name[name] for name in names)


def action_box(actuators: Sequence[Actuator]) -> BoxSpace:
    return BoxSpace(tuple(a.lower for a in actuators), tuple(a.upper for a in actuators))


def control(model: Model, actuators: Sequence[Actuator], action: Array) -> Array:
    """The control (nv,) of an action (n,), clipped to the actuators' ranges; other motors keep their targets."""
    topology, targets = model.topology, list(model.motor_target)
    dofs = [topology.v_start[topology.link(a.link)] + a.dof for a in actuators]
    for dof in dofs:
        targets[dof] = jnp.zeros_like(targets[dof])
    for dof, actuator, x in zip(dofs, actuators, action, strict=True):
        targets[dof] += actuator.scale * jnp.clip(x, actuator.lower, actuator.upper) + actuator.offset
    return jnp.stack(targets)
