"""Summary of an accepted step: its smooth motion, and the velocity jumps at its start and at its end."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...contact.gather_scatter import segment_sum
from ...contact.impulses import ContactImpulses
from ...engine.algebra.vec3 import Vec3
from ...engine.dynamics.kinematics import integrate_q
from ...engine.model import Model
from ...engine.state import State
from ..lanes import Lane
from ..proposal import Proposal
from ..step import TickResult
from .loop_impulses import NO_LOOPS, LoopImpulses, along_joints, at_jump, over_step


class VelocityJump(NamedTuple):
    """An instant of impacts.

    q: (*batch, nq) coordinates.
    dv: (*batch, nv) change of velocity.
    impulses: impulses of the contacts.
    loops: impulses of loops; 0 if there are none.
    """

    q: Array
    dv: Array
    impulses: ContactImpulses
    loops: LoopImpulses = NO_LOOPS


class StepSummary(NamedTuple):
    """An accepted step; h, velocity changes and impulses are 0 in lanes whose step was rejected.

    h: (*batch) length of the step [s].
    before, after: the states at its start and at its end.
    began, ended: (*batch, nv) velocities at its start and at its end, without the impacts there.
    q: (*batch, nq) coordinates midway.
    v: (*batch, nv) velocities midway.
    rest: impulses of resting contacts.
    jumps: instants of impacts.
    loops: impulses of loops; 0 if there are none.
    """

    h: Array
    before: State
    after: State
    began: Array
    ended: Array
    q: Array
    v: Array
    rest: ContactImpulses
    jumps: tuple[VelocityJump, ...]
    loops: LoopImpulses = NO_LOOPS


def summarize_step(model: Model, lane: Lane, ticked: TickResult) -> StepSummary:
    """Return the summary of a tick's step.  lane: the lane before the tick."""
    step, start, end = ticked.step, lane.ready.state, ticked.lane.ready.state
    counts, correction = ticked.lane.counts, lane.search.correction
    accepted = (counts.ticks > lane.counts.ticks) & (counts.rollbacks == lane.counts.rollbacks)
    moves = accepted & ~lane.fresh
    in_window = moves & False if step.window is None else moves & step.window
    began, ended = _only(in_window, step.start_v, start.v), _only(moves, step.state.v, start.v)
    h, middle = jnp.where(moves, step.h, 0), (ended + began) / 2
    q = integrate_q(model, start.q, middle, h / 2)
    # impulses that stop contacts at the start are part of the step, except in a window
    parts = (
        (moves, step.contact_impulses),
        (moves & ~in_window, step.start_impulses),
        (moves & (correction.times > 0), correction.impulses),
    )
    within, *others = (_where(*part) for part in parts)
    others = functools.reduce(ContactImpulses.__add__, others)
    impacts = ContactImpulses.by(model, end.q, ticked.contacts, _impact_impulses(accepted, ticked))
    jumps = [VelocityJump(end.q, jnp.where(accepted[..., None], end.v - step.state.v, 0), impacts)]
    if step.window is not None:
        jumps.append(VelocityJump(start.q, began - start.v, _where(in_window, step.start_impulses)))
    summary = StepSummary(h, start, end, began, ended, q, middle, within + others, tuple(jumps))
    return _with_loops(model, summary, lane, step, others) if model.topology.loops else summary


def _with_loops(model: Model, summary: StepSummary, lane: Lane, step: Proposal, others: ContactImpulses) -> StepSummary:
    """Return the summary with the impulses of loops.  others: impulses of contacts that are not in `step.spread`."""
    moves, still = summary.h > 0, jnp.zeros_like(summary.v)
    pushed = along_joints(model, summary.q, others)
    pushed = pushed if step.spread is None else pushed + _only(moves, step.spread, still)
    midway = State(summary.q, summary.v, summary.before.t + summary.h / 2)
    drive, dv = lane.ready.drive, summary.ended - summary.began
    loops = over_step(model, midway, dv, summary.h, drive, pushed, step.locked_dofs)
    light = weightless(model)
    jumps = [jump._replace(loops=at_jump(light, jump.q, jump.dv, jump.impulses)) for jump in summary.jumps]
    return summary._replace(loops=loops, jumps=tuple(jumps))


def weightless(model: Model) -> Model:
    return model.replace(gravity=jnp.zeros_like(model.gravity))


def _impact_impulses(accepted: Array, ticked: TickResult) -> Vec3:
    """Return the impulses (C, *batch) of the impacts at the end of the tick."""
    impacts, contacts = ticked.impacts, ticked.contacts
    real = (impacts.contact >= 0) & accepted
    row = jnp.maximum(impacts.contact, 0)
    return jax.tree.map(lambda x: segment_sum(jnp.where(real, x, 0), row, len(contacts.pair)), impacts.impulse)


def _only(yes: Array, new: Array, old: Array) -> Array:
    """Return `new` (*batch, n) where yes (*batch), else `old`."""
    return jnp.where(yes[..., None], new, old)


def _where(yes: Array, pushed: Any) -> ContactImpulses:
    """Return the impulses where yes (*batch), else 0."""
    return jax.tree.map(lambda x: jnp.where(yes, x, 0), pushed)
