"""Accelerations and inertias of the middle of a step, with springs, damping and motors that change within it.

Forces of resting contacts are found before the step is taken, from the accelerations that the step will have without
them. With tau(q, v) the forces of joints, K and D minus their derivatives, and a the mean acceleration,

    mean of tau = tau(q + h/2 v, v) - (h/2 D + h^2/6 K) a,
    so (M + h/2 D + h^2/6 K) a = tau(q + h/2 v, v) - C + J^T p/h,

with M and C at q + h/2 v: of order 2, where forces of the start of the step would be of order 1.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ...contact.contact_jacobian import inverse_mass_matrix
from ...engine.dynamics.passive import motor_forces
from ...engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ...engine.model import Model
from ...engine.state import State
from ...engine.topology import Topology
from .forces import Drive, Step, acceleration


def has_joints(topology: Topology) -> bool:
    """Return whether the scene has more than free bodies."""
    return set(topology.joints) - {"floating", "fixed"} != set()


def finite_kd(model: Model) -> Array:
    """Return the motors' kd, 0 for rigid ones, which act by impulses."""
    return jnp.where(jnp.isinf(model.motor_kd), 0, model.motor_kd)


def soften(model: Model, state: State, midway: State, drive: Drive, h: Array) -> tuple[Model, Array]:
    """Return the model with inertias M + h/2 D + h^2/6 K, and its accelerations (*batch, nv) midway without contacts.

    state: at the start of the step.
    midway: in its middle, with the velocities of the start.
    h: its length, in a shape that broadcasts with velocities [s].
    """
    follows = jnp.abs(motor_forces(model, state.q, state.v, drive.motors)) < model.motor_effort
    D = model.damping + jnp.where(follows, finite_kd(model), 0)
    K = model.stiffness + jnp.where(follows, model.motor_kp, 0)
    soft = model.replace(armature=model.armature + D * (h / 2) + K * (h * h / 6))
    return soft, acceleration(soft, midway, 1.0, drive.motors, drive.impulses(1.0))


def with_damping(model: Model, state: State, motors: Array | None, h: Step) -> Model:
    """Return the model with inertias M + h D, with which forces of the start of a step include the effect of damping
    at its end: `semi_implicit` is stable for any damping.

    A motor whose force at the end is within its effort follows, even if that of the start is not: bounded at the start,
    it would throw a light link back and forth.
    h: length of the step, in a shape that broadcasts with velocities [s].
    """
    return _add_damping(model, state, motors, h)[0]


def damped_acceleration(
    model: Model, state: State, drive: Drive, h: Array, dv: Array, middle: Array
) -> tuple[Model, Array, Array]:
    """Return the model `with_damping`, its M^-1 (T, w, w, *batch) at `middle`, and its accelerations (*batch, nv).

    h: length of the step, in a shape that broadcasts with velocities [s].
    dv: accelerations of the model without it at the start.
    middle: coordinates midway (*batch, nq), where the accelerations are right to first order in the step.
    """
    soft, bounded = _add_damping(model, state, drive.motors, h)
    inverse, trees = inverse_mass_matrix(soft, middle), trees_of(model.topology)

    def change() -> Array:  # (M + h D) a = M dv
        held = to_blocks(trees, (soft.armature - model.armature) * dv)
        less = (inverse * held[:-1, None]).sum(2)
        return dv - from_blocks(trees, jnp.concatenate([less, jnp.zeros_like(less[:1])]))

    whole = lambda: acceleration(soft, state, 1.0, drive.motors, drive.impulses(1.0))  # noqa: E731
    return soft, inverse, jax.lax.cond(bounded, whole, change)


def _add_damping(model: Model, state: State, motors: Array | None, h: Step) -> tuple[Model, Array]:
    """Return the model `with_damping`, and whether a motor's force at the start is beyond its effort."""
    kd, rigid = finite_kd(model), jnp.isinf(model.motor_kd)
    unbounded = model.replace(motor_effort=jnp.full_like(model.motor_effort, jnp.inf))
    force = motor_forces(unbounded, state.q, state.v, motors)

    def force_at_end() -> Array:
        soft = unbounded.replace(armature=model.armature + (model.damping + kd) * h)
        return force - kd * acceleration(soft, state, 1.0, motors) * h

    bounded = (jnp.abs(force) >= model.motor_effort).any()
    follows = jnp.abs(jax.lax.cond(bounded, force_at_end, lambda: force)) < model.motor_effort
    soft = model.replace(
        armature=model.armature + (model.damping + jnp.where(follows, kd, 0)) * h,
        motor_effort=jnp.where(follows & ~rigid, jnp.inf, model.motor_effort),
    )
    return soft, bounded
