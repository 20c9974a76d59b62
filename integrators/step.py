"""One tick of a scene with contacts: the program's table of contents.

propose     integrators   motion over h, with the impulses of resting contacts
detect      collision     what is near what there
determine   contact       what touches, and which joints stand at their limits
decide      integrators   too deep: roll back, take a shorter h; off its contacts: again, put right; else accept
respond     contact       impacts: new velocities
prepare     integrators   what the next tick starts from
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..contact.contacts import Contacts
from ..contact.events import Impacts
from ..contact.impact import would_bounce
from ..contact.respond import Response, respond
from ..contact.rows import relative
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.results import IMPACTS_CAPPED, NOT_FINITE, OK, gravest, no_room
from ..engine.state import State
from .clock import Frames, later, started
from .lanes import Correction, Counts, Lane, Ready, Search, select
from .prepare import Told, prepared
from .proposal import Proposal, kept, proposal
from .rules import Rules
from .sensitivity import looks, seen, seen_in_time
from .sleep import unchanged
from .time_control import decide, stalled, step_to_try


class Ticked(NamedTuple):
    """The lane after a tick.  contacts, impacts: of the state it looked at; no impacts where it was not accepted.
    tried: the proposal that led there."""

    lane: Lane
    contacts: Contacts
    impacts: Impacts
    tried: Proposal


def tick(rules: Rules, model: Model, lane: Lane, frames: Frames, max_dt: Array, told: Told) -> Ticked:
    """One proposal of every lane, accepted or not.

    max_dt: () or (*batch), the longest step [s].
    told: (model, state, number of the next frame) -> what acts from outside until the next tick.
    """
    with jax.named_scope("propose"):
        tried = led = proposal(rules, model, lane, step_to_try(lane, max_dt))
    look = looks(model, tried.state.q, tried.state.v, max_dt)
    tried, (near, bounds, contacts, rows), late = seen_in_time(rules, model, lane, tried, look)
    with jax.named_scope("decide"):
        verdict = decide(rules, model, lane, tried, contacts, rows, max_dt)
        full = verdict.accepted & ~lane.done & no_room(contacts.code)
        accepted = verdict.accepted & ~lane.done & ~full
        clock, t = later(lane.clock, tried.h, frames)
    stopped = full | (~lane.done & (verdict.code == NOT_FINITE))

    def taken() -> tuple[Lane, Impacts]:
        struck = _struck(rules, model, tried.state, contacts, rows, accepted, stalled(lane))
        with jax.named_scope("prepare"):
            after = State(tried.state.q, struck.v, t)
            orders = told(model, after, clock.frame)
            ready = prepared(rules, model, after, near, bounds, contacts, rows, orders, max_dt, tried, lane.ready.state)
        code = gravest(lane.code, tried.code, contacts.code, struck.code, verdict.code)
        done, awake = clock.frame > frames.count, jnp.zeros_like(lane.fresh)
        new = Lane(ready, verdict.search, clock, counted(struck.impacts.count), code, done, awake, late, awake)
        return new._replace(asleep=unchanged(lane, new)), struck.impacts

    def refused() -> tuple[Lane, Impacts]:
        code = jnp.where(stopped, gravest(lane.code, tried.code, contacts.code, verdict.code), lane.code)
        counts, done = counted(jnp.zeros_like(lane.code)), lane.done | stopped
        same = lane._replace(tried=None, search=verdict.search, counts=counts, code=code, done=done)
        return same, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(taken)[1])

    def counted(impacts: Array) -> Counts:
        seen = stop_gradient((contacts, near.needed))
        return lane.counts.plus(accepted, ~lane.done, full, tried.resting, impacts, *seen)

    if accepted.ndim:  # lanes of a batch do both
        (new, impacts), (same, _) = taken(), refused()
        new = select(accepted, new, same)
    else:
        new, impacts = jax.lax.cond(accepted, taken, refused)
    last = None if lane.tried is None else led
    return Ticked(new._replace(tried=last), contacts, impacts, tried)


def first_lane(rules: Rules, model: Model, state: State, frames: Frames, told: Told) -> Lane:
    """Lanes at their first states; their first tick goes nowhere and looks what is there."""

    def look() -> Ready:
        near, bounds, contacts, rows = seen(rules, model, state.q, looks(model, state.q, state.v, state.t))
        return prepared(rules, model, state, near, bounds, contacts, rows, told(model, state, no), state.t)

    no = jnp.zeros(state.t.shape, jnp.int32)
    ready = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(look))._replace(state=state)
    counts, clock = Counts.none(state.t), started(state.t, frames)
    late = jnp.zeros((trees_of(model.topology).n, *state.t.shape), state.q.dtype)
    search = Search.new(state.t, Correction.none(model, state.t))
    lane = Lane(ready, search, clock, counts, no, no > 0, no == 0, late, no > 0)
    return lane._replace(tried=kept(rules, model, lane))


def _struck(
    rules: Rules, model: Model, state: State, contacts: Contacts, rows: Any, accepted: Array, ended: Array
) -> Response:
    """ended: (*batch) whether what still closes is left to the next step, which stops it (`contact/resting/`)."""
    with jax.named_scope("respond"):
        here = contacts._replace(active=contacts.active & accepted & ~ended)
        struck = respond(
            model, state.q, state.v, here, rows, law=rules.law, impacts=rules.impacts, max_impacts=rules.max_impacts,
            max_logged=rules.max_logged,
        )  # fmt: skip
        u_n = relative(rows, to_blocks(trees_of(model.topology), state.v)).z
        bounces = (contacts.active & would_bounce(model, contacts, u_n)).any(0)
        capped = jnp.where(ended & accepted & bounces, IMPACTS_CAPPED, OK).astype(jnp.int32)
        return struck._replace(code=gravest(struck.code, capped))
