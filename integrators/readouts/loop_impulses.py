"""Impulses of loops on the links they tie: over a step, and at an instant of impacts.

A step does not return the impulses of its loops. They are those that explain the change of velocity best in the metric
of the masses, together with all others that acted; for redundant loops, the smallest ones that do.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...contact.grips import lock_dofs
from ...contact.impulses import ContactImpulses
from ...engine.dynamics import wrenches
from ...engine.loops.forward import multipliers
from ...engine.loops.wrenches import loop_wrenches_on_links
from ...engine.model import Model
from ...engine.state import State
from ..motion.forces import Drive, column, joint_forces


def over_step(
    model: Model, midway: State, dv: Array, h: Array, drive: Drive, others: Array, locked: Array | None
) -> Array:
    """Return impulses (*batch, nl, 6) of a step: moment about each link's origin and impulse, world axes [N m s, N s].

    midway: the state in the middle of the step.
    dv: (*batch, nv) change of velocity.
    h: (*batch) length of the step [s]; 0 in lanes without one.
    others: (*batch, nv) joint impulses of contacts and all others that are no function of the state [N m s, N s].
    locked: (*batch, nv) joints that friction or a motor held; None: none.
    """
    part = column(jnp.where(h > 0, h, 1))
    tau = joint_forces(model, midway, drive.motors) + others / part
    held = model if locked is None else lock_dofs(model, locked)
    force = multipliers(held, midway.q, midway.v, dv / part, tau)
    return loop_wrenches_on_links(model, midway.q, midway.v, midway.t, force, True) * h[..., None, None]


def at_jump(model: Model, q: Array, dv: Array, impulses: ContactImpulses) -> Array:
    """Return impulses (*batch, nl, 6) at an instant, see `over_step`.  model: without gravity.  dv: velocity change."""
    still, t = jnp.zeros_like(dv), jnp.zeros(dv.shape[:-1], dv.dtype)
    force = multipliers(model, q, still, dv, along_joints(model, q, impulses))
    return loop_wrenches_on_links(model, q, still, t, force, False)


def along_joints(model: Model, q: Array, impulses: ContactImpulses) -> Array:
    """Return the joint impulses (*batch, nv) of contacts and limits [N m s, N s]."""
    links = jnp.moveaxis(impulses.links, (0, 1), (-2, -1))
    return wrenches.joint_forces(model, q, links) + jnp.moveaxis(impulses.limits, 0, -1)
