"""The accelerations every scheme integrates: rigid-body dynamics, joint forces, contact impulses spread out."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...engine.dynamics.aba import aba
from ...engine.dynamics.passive import motor_forces, passive_forces
from ...engine.model import Model

Step = Array | float


def acceleration(
    model: Model, q: Array, v: Array, h: Step, control: Array | None = None, impulses: Array | None = None
) -> Array:
    """dv/dt (..., nv).

    control: (..., nv) what the motors are told, held over the step; None: their targets.
    impulses: (..., nv) joint-space impulses of the step [N m s, N s], acting as the constant force impulses/h.
    """
    tau = joint_forces(model, q, v, control)
    if impulses is not None:
        tau = tau + impulses / column(h)
    return aba(model, q, v, tau)


def joint_forces(model: Model, q: Array, v: Array, control: Array | None = None) -> Array:
    """Springs, damping, friction and motors (..., nv)."""
    return passive_forces(model, q, v) + motor_forces(model, q, v, control)


def column(h: Step) -> Step:
    """A step per lane, ready to multiply (..., nv)."""
    return h if jnp.ndim(h) == 0 else jnp.asarray(h)[..., None]
