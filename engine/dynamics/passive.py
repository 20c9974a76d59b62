"""Joint forces that are not asked for: springs, damping, Coulomb loss; and what a motor makes of a control."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ..forest import Forest
from ..joints import JOINTS
from ..model import Model

LOSS_SPEED = 1e-3  # [rad/s, m/s] Coulomb loss is regularised below this: a joint at rest creeps, it does not stick


@jax.jit
def displacement(model: Model, q: Array) -> Array:
    """How far each degree of freedom is from neutral (..., nv); the rotation vector for a spherical joint."""
    forest = Forest.of(model, q=q)
    parts = [JOINTS[group.joint].displacement(forest.coordinates(q, group)) for group in forest.groups]
    return forest.join_dofs(parts)


@jax.jit
def passive_forces(model: Model, q: Array, v: Array) -> Array:
    """Springs, damping and Coulomb loss (..., nv).

    A spring pulls with k (rest - displacement) along the displacement: it does the work of its energy, also on
    joints that turn in three dimensions. Damping is -d v, Coulomb loss -loss v/sqrt(v^2 + e^2), e = 1e-3: smooth,
    so that every integrator keeps its order, but stiff. With loss h/(m e) above about 3 a joint that should rest
    chatters at speeds of order loss h/m; shorten the step.
    """
    springs = jnp.where(model.stiffness == 0, 0.0, model.stiffness * (model.rest - displacement(model, q)))
    forest = Forest.of(model, q=q, springs=springs)
    pulls = [
        JOINTS[group.joint].pull(forest.coordinates(q, group), forest.per_dof(springs, group))
        for group in forest.groups
    ]
    return forest.join_dofs(pulls) - model.damping * v - model.loss * v / jnp.sqrt(v**2 + LOSS_SPEED**2)


@jax.jit
def motor_forces(model: Model, q: Array, v: Array, control: Array | None = None) -> Array:
    """clip(gain u - kp q - kd v, -effort, effort) (..., nv) with the control u (..., nv), or the motors' targets.

    Torque motors, and dofs without a motor: gain 1, kp = kd = 0, so u is a force [N m, N].
    Position motors: gain = kp, u is an angle or a length. Velocity motors: gain = kd, u is a rate.
    """
    u = model.motor_target if control is None else control
    held = jnp.where(model.motor_kp == 0, 0.0, model.motor_kp * displacement(model, q))
    return jnp.clip(model.motor_gain * u - held - model.motor_kd * v, -model.motor_effort, model.motor_effort)
