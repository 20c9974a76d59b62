"""One tick of a scene with contacts: the program's table of contents.

propose     integrators   motion over h, with the impulses of resting contacts
detect      collision     what is near what there
determine   contact       what touches, and which joints stand at their limits
decide      integrators   too deep: roll back, take a shorter h; off its contacts: again, put right; else accept
respond     contact       impacts: new velocities
prepare     integrators   what the next tick starts from
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..contact.contacts import Contacts
from ..contact.events import Impacts
from ..engine.dynamics.trees import trees_of
from ..engine.model import Model
from ..engine.results import NOT_FINITE, gravest, no_room
from ..engine.state import State
from .carried import known, off_at_most
from .clock import Frames, later, started, started_together, times
from .clocks import ONE, Clocks
from .cut import parted
from .islands_asleep import woken
from .lanes import Correction, Counts, Lane, Ready, Search, Window, select
from .prepare import Controller, prepared, unprepared
from .proposal import Proposal, kept, proposal
from .recording import Record
from .rules import Rules
from .sensitivity import looks, seen, seen_in_time
from .sleep import unchanged
from .striking import Early, struck_at, struck_early
from .time_control import decide, stalled, step_to_try
from .window import left_to_window


class Ticked(NamedTuple):
    """The lane after a tick.  contacts, impacts: of the state it looked at; no impacts where it was not accepted.
    tried: the proposal that led there.  early: what that began with, if it is a window; None where there are none.
    at: (C,) when the contacts are [s]; None: at the state's time."""

    lane: Lane
    contacts: Contacts
    impacts: Impacts
    tried: Proposal
    early: Early | None = None
    at: Array | None = None

    def logged(self, record: Record) -> Record:
        """The record with the impacts of this tick."""
        if self.early is not None:
            record = record.with_impacts(*self.early)
        return record.with_impacts(self.lane.ready.state.t if self.at is None else self.at, self.contacts, self.impacts)


def tick(rules: Rules, model: Model, lane: Lane, frames: Frames, max_dt: Array, controller: Controller) -> Ticked:
    """One proposal of every lane, accepted or not.

    max_dt: () or (*batch), the longest step [s].
    controller: (model, state, number of the next frame) -> what acts from outside until the next tick.
    """
    with jax.named_scope("propose"):
        tried = led = proposal(rules, model, lane, *step_to_try(lane, max_dt))
        knew = known(model, lane, tried)
    clocks, apart = lane.clocks, lane.clocks.apart(max_dt)
    look = looks(model, tried.state.q, tried.state.v, max_dt, off_at_most(model, lane, tried.h, knew), apart)
    still = clocks.waiting(lane.island, tried.h, lane.clock.left, lane.fresh)
    tried, (near, bounds, contacts, rows, reach), late = seen_in_time(rules, model, lane, tried, look, still)
    with jax.named_scope("decide"):
        verdict = decide(rules, model, lane, tried, knew, contacts, rows, max_dt)
        full = verdict.accepted & ~lane.done & no_room(contacts.code)
        accepted = verdict.accepted & ~lane.done & ~full
        clock, t = later(lane.clock, tried.h, frames, apart)
        island, wakes = (None, lane.done & False) if lane.island is None else woken(lane.island, contacts, rows)
    stopped = full | (~lane.done & (verdict.code == NOT_FINITE))

    def taken() -> tuple[Lane, Impacts, Impacts | None]:
        early = struck_early(model, lane, tried, accepted)
        now = accepted & ~left_to_window(lane, verdict.search, tried.window) & ~wakes
        moving = clocks.under_way(rows.tree, contacts, tried.h, lane.fresh)
        ended = clocks.of_contacts(rows.tree, stalled(lane))
        struck = struck_at(rules, model, tried.state, moving, rows, verdict.u_n, now, ended)
        done = (clock.frame > frames.count) & ~wakes
        with jax.named_scope("prepare"):
            after = State(tried.state.q, struck.v, t)
            drive = controller(model, after, clock.frame)
            who = parted(model, lane, tried.h, after, drive, bounds, reach, clock.left)
            found, led_by = (near, bounds, contacts, rows), (tried, lane.ready.state)
            stays = island if apart is None else still
            goes_on = lambda: prepared(rules, model, after, *found, drive, max_dt, *led_by, stays, reach, who)  # noqa: E731
            ends = lambda: unprepared(rules, model, after, *found[1:], drive, reach, clock.left)  # noqa: E731
            ready = goes_on() if done.ndim else jax.lax.cond(done, ends, goes_on)
        code = gravest(lane.code, tried.code, contacts.code, struck.code, verdict.code)
        awake = jnp.zeros_like(lane.fresh)
        count = struck.impacts.count if early is None else struck.impacts.count + early.count
        new = Lane(ready, verdict.search, clock, counted(count), code, done, wakes, late, awake, island, who)
        all_went = clocks.of_all(tried.h > 0)  # who waits for others does not rest
        return new._replace(asleep=unchanged(lane, new) & all_went), struck.impacts, early

    def refused() -> tuple[Lane, Impacts, Impacts | None]:
        code = jnp.where(stopped, gravest(lane.code, tried.code, contacts.code, verdict.code), lane.code)
        counts, done = counted(jnp.zeros_like(lane.code)), lane.done | stopped
        same = lane._replace(tried=None, search=verdict.search, counts=counts, code=code, done=done)
        return same, *jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(taken)[1:])

    def counted(impacts: Array) -> Counts:
        seen = stop_gradient((contacts, near.needed))
        return lane.counts.plus(accepted, ~lane.done, full, tried.resting, tried.window, impacts, *seen)

    if accepted.ndim:  # lanes of a batch do both
        (new, impacts, early), (same, _, _) = taken(), refused()
        new = select(accepted, new, same)
    else:
        new, impacts, early = jax.lax.cond(accepted, taken, refused)
    began = None if early is None else Early(lane.ready.state.t, lane.ready.contacts, early)
    last = None if lane.tried is None else led
    at = None if apart is None else clocks.of_contacts(rows.tree, times(lane.clock, tried.h))
    return Ticked(new._replace(tried=last), contacts, impacts, tried, began, at)


def first_lane(
    rules: Rules,
    model: Model,
    state: State,
    frames: Frames,
    controller: Controller,
    window: Array | None = None,
    island: Array | None = None,
    clocks: Clocks = ONE,
    max_dt: Array | float = 0.0,
) -> Lane:
    """Lanes at their first states; their first tick goes nowhere and looks what is there.

    window: () or (*batch) how long windows are [s]; None: there are none.
    island: (T, *batch) who sleeps, see `islands_asleep.py`; None: nobody ever does.
    clocks: who goes by which clock.  max_dt: the longest step [s], where there are several.
    """
    clock, apart = started(state.t, frames), clocks.apart(max_dt)
    if apart is not None:
        clock = started_together(clock, trees_of(model.topology).n, apart)

    def look() -> Ready:
        look = looks(model, state.q, state.v, state.t, jnp.zeros_like(state.t), apart)
        here = seen(rules, model, state, look, window, island)
        found, drive = (here.bounds, here.contacts, here.rows), controller(model, state, no)
        return unprepared(rules, model, state, *found, drive, here.reach, clock.left)

    no = jnp.zeros(state.t.shape, jnp.int32)
    ready = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(look))._replace(state=state)
    counts = Counts.none(state.t)
    late = jnp.zeros((trees_of(model.topology).n, *state.t.shape), state.q.dtype)
    if window is not None:
        window = jnp.broadcast_to(window, state.t.shape).astype(state.t.dtype)
    windows = None if window is None else Window(window, no == 0, state.t, no > 0)
    search = Search.new(clock.left, Correction.none(model, state.t, clock.left, bool(rules.report)), windows)
    lane = Lane(ready, search, clock, counts, no, no > 0, no == 0, late, no > 0, island, clocks)
    return lane._replace(tried=kept(rules, model, lane))
