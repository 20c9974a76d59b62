"""What one tick did to a scene: the smooth part of its step, and the impulses at its start and at its end."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...contact.contacts import Contacts
from ...contact.picking import summed
from ...engine.algebra.vec3 import Vec3
from ...engine.dynamics.kinematics import integrate_q
from ...engine.model import Model
from ...engine.state import State
from ..lanes import Lane
from ..step import Ticked


class Push(NamedTuple):
    """Impulses p (C, *batch) of contacts on their bodies A, in the contact frames, at the coordinates q (*batch, nq)
    [N s]; those of contacts that push nothing are 0."""

    q: Array
    contacts: Contacts
    p: Vec3


class Passage(NamedTuple):
    """An accepted step; of lanes whose step was not accepted everything that passes is 0.

    h: (*batch) how long it was [s].
    q: (*batch, nq), v: (*batch, nv) midway.  dv: (*batch, nv) change of velocity from its start to its end, without
    the impacts there.
    rest: what resting contacts pushed.
    jumps: each instant of impacts: what contacts pushed, and (*batch, nv) the change of velocity.
    """

    h: Array
    before: State
    after: State
    q: Array
    v: Array
    dv: Array
    rest: Push
    jumps: tuple[tuple[Push, Array], ...]


def passage(model: Model, lane: Lane, ticked: Ticked) -> Passage:
    """lane: before the tick."""
    tried, start, end = ticked.tried, lane.ready.state, ticked.lane.ready.state
    counts = ticked.lane.counts
    accepted = (counts.ticks > lane.counts.ticks) & (counts.rollbacks == lane.counts.rollbacks)
    moves = accepted & ~lane.fresh
    began, h = _only(moves, tried.start, start.v), jnp.where(moves, tried.h, 0)
    ended = _only(moves, tried.state.v, start.v)
    dv, middle = ended - began, (ended + began) / 2
    q = integrate_q(model, start.q, middle, h / 2)
    rest = Push(start.q, lane.ready.contacts, _only(moves, tried.impulse, _zero(tried.impulse)))
    jumps = [(_struck(end.q, accepted, ticked), jnp.where(accepted[..., None], end.v - tried.state.v, 0))]
    if tried.struck is not None and tried.window is not None:
        early = moves & tried.window
        p = _only(early, tried.struck.p, _zero(tried.struck.p))
        jumps.append((Push(start.q, lane.ready.contacts, p), began - start.v))
    return Passage(h, start, end, q, middle, dv, rest, tuple(jumps))


def _struck(q: Array, accepted: Array, ticked: Ticked) -> Push:
    """Impacts at the end of the tick."""
    impacts, contacts = ticked.impacts, ticked.contacts
    real = (impacts.contact >= 0) & accepted
    row = jnp.maximum(impacts.contact, 0)
    p = jax.tree.map(lambda x: summed(jnp.where(real, x, 0), row, len(contacts.pair)), impacts.impulse)
    return Push(q, contacts, p)


def _only(yes: Array, new: Any, old: Any) -> Any:
    """(*batch, n), or (C, *batch) in a Vec3."""
    wide = (lambda x: yes[..., None]) if isinstance(new, Array) else (lambda x: yes)
    return jax.tree.map(lambda x, y: jnp.where(wide(x), x, y), new, old)


def _zero(v: Vec3) -> Vec3:
    return jax.tree.map(jnp.zeros_like, v)
