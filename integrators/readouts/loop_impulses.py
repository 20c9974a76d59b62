"""Impulses of loops on the links they tie: over a step, and at an instant of impacts.

A step does not say what its loops handed over, and does not have to: their impulses are those that together with all
else that acted explain the change of velocity, as nearly as any do in the metric of the masses. Those of redundant
loops are the smallest that do.
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
    """Impulses (*batch, nl, 6) over a step: moment about each link's origin [N m s] and impulse [N s], world axes.

    midway: the state in its middle.
    dv: (*batch, nv) change of velocity.
    h: (*batch) its length [s]; 0 where there was none.
    others: (*batch, nv) joint impulses of contacts and of what else is not a function of the state [N m s, N s].
    locked: (*batch, nv) joints that friction or a motor held; None: none.
    """
    part = column(jnp.where(h > 0, h, 1))
    tau = joint_forces(model, midway, drive.motors) + others / part
    held = model if locked is None else lock_dofs(model, locked)
    force = multipliers(held, midway.q, midway.v, dv / part, tau)
    return loop_wrenches_on_links(model, midway.q, midway.v, midway.t, force, True) * h[..., None, None]


def at_jump(model: Model, q: Array, dv: Array, impulses: ContactImpulses) -> Array:
    """Impulses (*batch, nl, 6) at an instant, as in `over_step`.  model: without gravity.  dv: change of velocity."""
    still, t = jnp.zeros_like(dv), jnp.zeros(dv.shape[:-1], dv.dtype)
    force = multipliers(model, q, still, dv, along_joints(model, q, impulses))
    return loop_wrenches_on_links(model, q, still, t, force, False)


def along_joints(model: Model, q: Array, impulses: ContactImpulses) -> Array:
    """Joint impulses (*batch, nv) of contacts and limits [N m s, N s]."""
    links = jnp.moveaxis(impulses.links, (0, 1), (-2, -1))
    return wrenches.joint_forces(model, q, links) + jnp.moveaxis(impulses.limits, 0, -1)
