"""Passive joint forces: springs and damping; and motor forces by control.

Dry friction and rigid motors, which hold joints, are not functions of the state: they depend on all other forces, and
a run computes them (`contact/grips.py`).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from ..shaped import Float


@jax.jit
def displacement(model: Model, q: Float[Array, "*#batch nq"]) -> Float[Array, "*#batch nv"]:
    """Displacement of each degree of freedom from neutral; the rotation vector of a spherical joint."""
    forest = Forest.of(model, q=q)
    parts = [JOINTS[group.joint].displacement(forest.coordinates(q, group)) for group in forest.groups]
    return forest.join_dofs(parts)


@jax.jit
def passive_forces(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*#batch nv"]:
    """Forces of springs and damping, without Coulomb loss.

    A spring pulls with k (rest - displacement) along the displacement: it does the work of its energy, also on
    joints that rotate in three dimensions. Damping is -d v. Coulomb loss is -loss sign(v) if a joint moves; the force
    that holds a joint at rest depends on all other forces, contacts too, and only a run computes it.
    """
    springs = jnp.where(model.stiffness == 0, 0.0, model.stiffness * (model.rest - displacement(model, q)))
    forest = Forest.of(model, q=q, springs=springs)
    pulls = [
        JOINTS[group.joint].pull(forest.coordinates(q, group), forest.per_dof(springs, group))
        for group in forest.groups
    ]
    return forest.join_dofs(pulls) - model.damping * v


@jax.jit
def motor_forces(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    control: Float[Array, "*#batch nv"] | None = None,
) -> Float[Array, "*#batch nv"]:
    """clip(gain u - kp q - kd v, -effort, effort) with the control u, or the motors' targets.

    Torque motors, and degrees of freedom without a motor, have gain 1, kp = kd = 0, so u is a force [N m, N].
    Position motors: gain = kp, u is an angle or a length. Velocity motors: gain = kd, u is a rate. Rigid motors, whose
    kd is infinite, are left out: their force depends on all other forces, and only a run computes it.
    """
    u = model.motor_target if control is None else control
    gain, kd = model.motor_gain, model.motor_kd
    if model.topology.gripped[1]:
        rigid = jnp.isinf(kd)
        gain, kd = (jnp.where(rigid, 0, x) for x in (gain, kd))
    spring = jnp.where(model.motor_kp == 0, 0.0, model.motor_kp * displacement(model, q))
    return jnp.clip(gain * u - spring - kd * v, -model.motor_effort, model.motor_effort)
