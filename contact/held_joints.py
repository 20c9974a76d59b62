"""Joints that rigid motors, dry friction and stops hold at a state, and the forces of those that give way.

A run finds their impulses together with those of contacts, step by step (`grips.py`, `determine.py`). Here only forces
at an instant are needed. All joints that may be held are locked first. A joint that would need a larger force than
available, or a pull from a stop, is released and gets the largest available force.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.dynamics.passive import motor_forces, passive_forces
from ..engine.dynamics.rnea import rnea
from ..engine.loops.active_forces import loop_forces
from ..engine.loops.forward import constrained, exact
from ..engine.loops.jacobian import closed
from ..engine.model import Model
from .determine import limited_dofs
from .grips import has_rotor, lock_dofs


def lock_held_joints(model: Model, q: Array, v: Array, t: Array, motors: Array, forces: Array) -> tuple[Model, Array]:
    """Return the model with the held joints locked, and the forces plus those on joints whose grips give way.

    motors: (nv,) motor commands.  forces: (nv,) other forces along the degrees of freedom [N m, N].
    A rigid motor counts as at its target, for any target: it keeps its rate.
    """
    topology = model.topology
    if not exact(topology) or not (any(topology.gripped) or len(limited_dofs(topology)[0])):
        return model, forces
    least, most = _bounds(model, q, v)
    held = least < most
    tau = passive_forces(model, q, v) + motor_forces(model, q, v, motors) + loop_forces(model, q, v, t) + forces
    tau = tau + jnp.where(held, 0, most)
    acceleration, force = constrained(lock_dofs(model, held), q, v, t, tau)
    needed = rnea(model, q, v, acceleration) - tau - force @ closed(model, q, v, t)[0]
    given = jnp.clip(needed, least, most)
    holds = held & (given == needed)
    return lock_dofs(model, holds), forces + jnp.where(holds, 0, jnp.where(held, given, most))


def _bounds(model: Model, q: Array, v: Array) -> tuple[Array, Array]:
    """Return the least and the largest force (nv,) that may hold each joint [N m, N]; equal if none does."""
    topology, rests = model.topology, jnp.abs(v) <= model.rest_speed
    losing, rigid = (_among(dofs, topology.nv) for dofs in topology.gripped)
    loss = jnp.where(losing, model.loss, 0)
    effort = jnp.where(rigid & jnp.isinf(model.motor_kd), model.motor_effort, 0)
    against = -jnp.sign(v) * loss
    least, most = (jnp.where(rests, sign * loss, against) + sign * effort for sign in (-1, 1))
    dofs, coordinates, _ = limited_dofs(topology)
    at = jnp.zeros_like(v).at[dofs].set(q[coordinates])
    has = _among(dofs, topology.nv) & rests
    most = jnp.where(has & (at - model.lower <= model.gap_band), jnp.inf, most)
    least = jnp.where(has & (model.upper - at <= model.gap_band), -jnp.inf, least)
    rotor = has_rotor(topology)
    return jnp.where(rotor, least, 0), jnp.where(rotor, most, 0)


def _among(dofs: tuple[int, ...] | np.ndarray, nv: int) -> np.ndarray:
    return np.isin(np.arange(nv), np.asarray(dofs, int))
