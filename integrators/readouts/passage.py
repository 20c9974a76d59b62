"""What one tick did to a scene: the smooth part of its step, and the impulses at its start and at its end."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...contact.indexing import segment_sum
from ...contact.readout import Pushed
from ...engine.algebra.vec3 import Vec3
from ...engine.dynamics.kinematics import integrate_q
from ...engine.model import Model
from ...engine.state import State
from ..lanes import Lane
from ..step import Ticked


class Jump(NamedTuple):
    """An instant of impacts: what contacts pushed, at the coordinates q (*batch, nq), and the change of velocity dv
    (*batch, nv)."""

    q: Array
    dv: Array
    pushed: Pushed


class Passage(NamedTuple):
    """An accepted step; of lanes whose step was not accepted everything that passes is 0.

    h: (*batch) how long it was [s].
    began, ended: (*batch, nv) velocities at its start and at its end, without the impacts there.
    q: (*batch, nq), v: (*batch, nv) midway.
    rest: what resting contacts pushed.
    """

    h: Array
    before: State
    after: State
    began: Array
    ended: Array
    q: Array
    v: Array
    rest: Pushed
    jumps: tuple[Jump, ...]


def passage(model: Model, lane: Lane, ticked: Ticked) -> Passage:
    """lane: before the tick."""
    tried, start, end = ticked.tried, lane.ready.state, ticked.lane.ready.state
    counts, correction = ticked.lane.counts, lane.search.correction
    accepted = (counts.ticks > lane.counts.ticks) & (counts.rollbacks == lane.counts.rollbacks)
    moves = accepted & ~lane.fresh
    early = moves & False if tried.window is None else moves & tried.window
    began, ended = _only(early, tried.start, start.v), _only(moves, tried.state.v, start.v)
    h, middle = jnp.where(moves, tried.h, 0), (ended + began) / 2
    q = integrate_q(model, start.q, middle, h / 2)
    # what is stopped at the start is part of the step, but where that is a window
    parts = (moves, tried.pushed), (moves & ~early, tried.first), (moves & (correction.times > 0), correction.pushed)
    rest = functools.reduce(Pushed.__add__, (_where(*part) for part in parts))
    struck = Pushed.by(model, end.q, ticked.contacts, _struck(accepted, ticked))
    jumps = [Jump(end.q, jnp.where(accepted[..., None], end.v - tried.state.v, 0), struck)]
    if tried.window is not None:
        jumps.append(Jump(start.q, began - start.v, _where(early, tried.first)))
    return Passage(h, start, end, began, ended, q, middle, rest, tuple(jumps))


def _struck(accepted: Array, ticked: Ticked) -> Vec3:
    """(C, *batch) impulses of the impacts at the end of the tick."""
    impacts, contacts = ticked.impacts, ticked.contacts
    real = (impacts.contact >= 0) & accepted
    row = jnp.maximum(impacts.contact, 0)
    return jax.tree.map(lambda x: segment_sum(jnp.where(real, x, 0), row, len(contacts.pair)), impacts.impulse)


def _only(yes: Array, new: Array, old: Array) -> Array:
    """(*batch, n) the new ones where yes (*batch)."""
    return jnp.where(yes[..., None], new, old)


def _where(yes: Array, pushed: Any) -> Pushed:
    """Nothing but where yes (*batch)."""
    return jax.tree.map(lambda x: jnp.where(yes, x, 0), pushed)
