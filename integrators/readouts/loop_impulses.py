"""Impulses of loops on the links they tie: over a step, and at an instant of impacts.

A step does not return the impulses of its loops. They are those that explain the change of velocity best in the metric
of the masses, together with all others that acted; for redundant loops, the smallest ones that do.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ...contact.grips import lock_dofs
from ...contact.impulses import ContactImpulses
from ...engine.dynamics import wrenches
from ...engine.loops.forward import multipliers
from ...engine.loops.wrenches import loop_wrenches_on_links, wrenches_by_loop
from ...engine.model import Model
from ...engine.state import State
from ..motion.forces import Drive, column, joint_forces


class LoopImpulses(NamedTuple):
    """Impulses of loops, world axes [N m s, N s].

    links: (*batch, nl, 6) on each link: moment about its origin, and impulse; without gears and drives of joints.
    loops: (*batch, nk, 6) of each loop on its link a, in the form of `carom.loop_wrenches`.
    """

    links: Array | float
    loops: Array | float


NO_LOOPS = LoopImpulses(0.0, 0.0)


def over_step(
    model: Model, midway: State, dv: Array, h: Array, drive: Drive, others: Array, locked: Array | None
) -> LoopImpulses:
    """Return the impulses of a step.

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
    given = model, midway.q, midway.v, midway.t, force, True
    return LoopImpulses(*(x * h[..., None, None] for x in (loop_wrenches_on_links(*given), wrenches_by_loop(*given))))


def at_jump(model: Model, q: Array, dv: Array, impulses: ContactImpulses) -> LoopImpulses:
    """Return the impulses at an instant, see `over_step`.  model: without gravity.  dv: velocity change."""
    still, t = jnp.zeros_like(dv), jnp.zeros(dv.shape[:-1], dv.dtype)
    force = multipliers(model, q, still, dv, along_joints(model, q, impulses))
    given = model, q, still, t, force, False
    return LoopImpulses(loop_wrenches_on_links(*given), wrenches_by_loop(*given))


def along_joints(model: Model, q: Array, impulses: ContactImpulses) -> Array:
    """Return the joint impulses (*batch, nv) of contacts and limits [N m s, N s]."""
    links = jnp.moveaxis(impulses.links, (0, 1), (-2, -1))
    return wrenches.joint_forces(model, q, links) + jnp.moveaxis(impulses.limits, 0, -1)
