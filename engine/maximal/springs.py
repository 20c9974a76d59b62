"""Forces in the joints as parameters of loops: springs, dampers, constant motors, limits; coefficients of penalties."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..model import Model
from .refusals import COORDINATES

# per effective mass, for shifts and turns: Mikhaylyuk & Strashnov (2013), section 5, for steps of 3e-3 s
STIFF = (5000.0, 10000.0)  # [1/s^2, m^2/(rad s^2)]
DAMP = (25.0, 10.0)  # [1/s, m^2/(rad s)]

DOF_DEFAULTS = {
    "armature": 0.0, "damping": 0.0, "loss": 0.0, "stiffness": 0.0, "rest": 0.0, "motor_gain": 1.0, "motor_kp": 0.0,
    "motor_kd": 0.0, "motor_effort": np.inf, "motor_target": 0.0, "lower": -np.inf, "upper": np.inf,
    "limit_restitution": 0.0,
}  # fmt: skip
ACTING = ("damping", "stiffness", "motor_kp", "motor_kd", "motor_target", "lower", "upper")


def acts(model: Model, link: int) -> bool:
    """Return whether a spring, damper, motor or limit acts in the joint of a link."""
    own = slice(*model.topology.v_start[link : link + 2])
    return any((np.asarray(getattr(model, name))[..., own] != DOF_DEFAULTS[name]).any() for name in ACTING)


def springs_and_limits(model: Model, links: np.ndarray) -> dict[str, Array]:
    """Return loop_spring (..., joints, 2, 4) and loop_limits (..., joints, 2, 2).

    A motor clip(gain u - kp x - kd dx/dt) is a spring, a damper and a constant force while it is not clipped.
    """
    dofs = _dofs(model, links)

    def of(name: str) -> Array:
        value = getattr(model, name)
        none = jnp.full((*value.shape[:-1], 1), DOF_DEFAULTS[name], value.dtype)
        return jnp.concatenate([value, none], -1)[..., dofs]

    kp, rest, effort = of("motor_kp"), of("rest"), of("motor_effort")
    force = jnp.clip(of("motor_gain") * of("motor_target"), -effort, effort) - kp * rest
    spring = jnp.broadcast_arrays(of("stiffness") + kp, rest, of("damping") + of("motor_kd"), force)
    limits = jnp.broadcast_arrays(of("lower"), of("upper"))
    return {"loop_spring": jnp.stack(spring, -1), "loop_limits": jnp.stack(limits, -1)}


def _dofs(model: Model, links: np.ndarray) -> np.ndarray:
    """Degrees of freedom that the loops measure, (joints, 2), -1 for none."""
    topology, rows = model.topology, []
    for i in links:
        first, width = topology.v_start[i], len(COORDINATES.get(topology.joints[i], ()))
        rows.append([first + k if k < width else -1 for k in range(2)])
    return np.array(rows, int).reshape(-1, 2)


def coefficients(model: Model, ends: np.ndarray) -> dict[str, Array]:
    """Return loop_stiff and loop_damp (..., loops, 2), by the effective mass of the ends (loops, 2); the world's is
    infinite."""
    light = jnp.concatenate([1 / model.mass, jnp.zeros_like(model.mass[..., :1])], -1)
    effective = 1 / (light[..., ends[:, 0]] + light[..., ends[:, 1]])
    starred = {"loop_stiff": STIFF, "loop_damp": DAMP}
    return {name: effective[..., None] * jnp.array(x, effective.dtype) for name, x in starred.items()}
