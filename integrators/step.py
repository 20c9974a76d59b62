"""One tick of a scene with contacts, in six stages.

propose     integrators   a step of length h, with the impulses of resting contacts
detect      collision     pairs of shapes that are near each other at the end of the step
determine   contact       contacts, and joints at their limits
decide      integrators   too deep: roll back and take a shorter h; contacts missed: correct the end; else accept
respond     contact       impacts: new velocities
prepare     integrators   contact kinematics and step limits for the next tick
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..contact.contacts import Contacts
from ..contact.determine import in_envelope
from ..contact.events import Impacts
from ..engine.dynamics.trees import trees_of
from ..engine.model import Model
from ..engine.results import BLOCKED, LEAST_GRAVE, gravest, no_room
from ..engine.state import State
from .clock import Frames, advance_clock, clock_times, start_clock, start_island_clocks
from .clock_assignment import assign_clocks
from .clocks import ONE, Clocks
from .contact_error import expect_contacts, max_gap_error
from .islands_asleep import wake_islands
from .lanes import Correction, Counts, Lane, Ready, Search, Window, select
from .prepare import Controller, prepare_step, skip_preparation
from .proposal import Proposal, initial_proposal, propose
from .recording import Record
from .rules import Rules
from .sensitivity import detect_and_determine, detect_at_impact_time, detection_ranges
from .sleep import is_unchanged
from .striking import TimedImpacts, impacts_at_window_start, resolve_impacts
from .time_control import decide, is_stalled, step_to_try
from .window import left_to_window, load_after


class TickResult(NamedTuple):
    """The lane after a tick, with the contacts and impacts that the tick found.

    lane: the lane after the tick.
    contacts: contacts at the end of the step that was tried.
    impacts: impacts at the end of that step; none if it was not accepted.
    step: the step that was tried.
    window_impacts: impacts at the start of a window; None in runs without windows.
    at: (C,) time of each contact [s]; None: the time of the state.
    """

    lane: Lane
    contacts: Contacts
    impacts: Impacts
    step: Proposal
    window_impacts: TimedImpacts | None = None
    at: Array | None = None

    def log_impacts(self, record: Record) -> Record:
        """Return the record with the impacts of this tick added."""
        if self.window_impacts is not None:
            record = record.with_impacts(*self.window_impacts)
        return record.with_impacts(self.lane.ready.state.t if self.at is None else self.at, self.contacts, self.impacts)


def tick(rules: Rules, model: Model, lane: Lane, frames: Frames, max_dt: Array, controller: Controller) -> TickResult:
    """Try one step of every lane, and accept or reject it.

    max_dt: () or (*batch), the longest step [s].
    controller: (model, state, number of the next frame) -> controls and forces until the next tick.
    """
    lane = lane.contacts_in_front()
    with jax.named_scope("propose"):
        step = first_try = propose(rules, model, lane, *step_to_try(lane, max_dt))
        expected = expect_contacts(model, lane, step)
    clocks, apart = lane.clocks, lane.clocks.apart(max_dt)
    ranges = detection_ranges(
        rules, model, step.state.q, step.state.v, max_dt, max_gap_error(model, lane, step.h, expected), apart
    )
    asleep = clocks.waiting(lane.island, step.h, lane.clock.left, lane.fresh)
    step, (near, bounds, contacts, rows, reach), late, end = detect_at_impact_time(
        rules, model, lane, step, ranges, asleep
    )
    with jax.named_scope("decide"):
        verdict = decide(rules, model, lane, end.tried, end.contacts, end.rows, expected, max_dt)
        full = verdict.accepted & ~lane.done & no_room(contacts.code)
        blocked = ~lane.done & ~lane.fresh & (contacts.code == BLOCKED)
        accepted = verdict.accepted & ~lane.done & ~full & ~blocked
        clock, t = advance_clock(lane.clock, lane.ready.state.t, step.h, frames, apart)
        new_frame = clock.frame > lane.clock.frame  # it does not depend on earlier ones
        island, wakes = (None, lane.done & False) if lane.island is None else wake_islands(lane.island, contacts, rows)
    stopped = full | blocked | (~lane.done & (verdict.code >= LEAST_GRAVE))

    @jax.jit  # traced once, for the shapes and for the branch
    def accept() -> tuple[Lane, Impacts, Impacts | None]:
        window_impacts = impacts_at_window_start(model, lane, step, accepted)
        strikes = accepted & ~left_to_window(lane, verdict.search, step.window) & ~wakes
        moving = clocks.under_way(rows.tree, contacts, step.h, lane.fresh)
        ended = clocks.of_contacts(rows.tree, is_stalled(lane) & ~new_frame)
        response = resolve_impacts(rules, model, step.state, moving, rows, verdict.u_n, strikes, ended)
        done = (clock.frame > frames.count) & ~wakes
        with jax.named_scope("prepare"):
            after = State(step.state.q, response.v, t)
            drive = controller(model, after, clock.frame)
            new_clocks = assign_clocks(model, lane, step.h, after, drive, bounds, reach, clock.left)
            led_by = step._replace(rests=step.rests & ~new_frame), lane.ready.state
            at_end = near, bounds, contacts, rows
            stays = island if apart is None else asleep
            renewed = new_frame & ~done & depends_on_step(model, contacts, response.impacts.count, step.window)
            go_on = lambda: prepare_step(rules, model, after, *at_end, drive, max_dt, *led_by, stays, reach, new_clocks)  # noqa: E731
            end = lambda: skip_preparation(rules, model, after, *at_end[1:], drive, reach, clock.left)  # noqa: E731
            ready = go_on() if done.ndim else jax.lax.cond(done | renewed, end, go_on)
            seen = ready.contacts._replace(active=ready.contacts.active & ~renewed)
            ready = ready._replace(contacts=seen, load=load_after(lane, step, contacts, verdict.partner, new_frame))
        code = gravest(lane.code, step.code, contacts.code, response.code, verdict.code)
        awake = jnp.zeros_like(lane.fresh)
        count = response.impacts.count if window_impacts is None else response.impacts.count + window_impacts.count
        fresh = wakes | renewed
        new = Lane(ready, verdict.search, clock, count_tick(count), code, done, fresh, late, awake, island, new_clocks)
        all_went = clocks.of_all(step.h > 0)  # a tree that waits for others is not asleep
        return new._replace(asleep=is_unchanged(lane, new) & all_went), response.impacts, window_impacts

    def reject() -> tuple[Lane, Impacts, Impacts | None]:
        code = jnp.where(stopped, gravest(lane.code, step.code, contacts.code, verdict.code), lane.code)
        counts, done = count_tick(jnp.zeros_like(lane.code)), lane.done | stopped
        same = lane._replace(tried=None, search=verdict.search, counts=counts, code=code, done=done)
        return same, *jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(accept)[1:])

    def count_tick(impacts: Array) -> Counts:
        detected = stop_gradient((contacts, near.needed))
        return lane.counts.plus(accepted, ~lane.done, full, step.resting, step.window, impacts, *detected)

    if accepted.ndim:  # lanes of a batch compute both
        (new, impacts, window_impacts), (same, _, _) = accept(), reject()
        new = select(accepted, new, same)
    else:
        new, impacts, window_impacts = jax.lax.cond(accepted, accept, reject)
    began = None if window_impacts is None else TimedImpacts(lane.ready.state.t, lane.ready.contacts, window_impacts)
    last = None if lane.tried is None else first_try
    at = None if apart is None else clocks.of_contacts(rows.tree, clock_times(lane.clock, step.h))
    return TickResult(new._replace(tried=last), contacts, impacts, step, began, at)


def depends_on_step(model: Model, contacts: Contacts, impacts: Array, window: Array | None) -> Array:
    """Return whether the contacts at the end of a step (*batch) may be others than a run that starts there detects.

    Contacts that the step carried are detected in a larger distance, and the near pairs are those of the velocities
    before the impacts. At a frame such a lane detects again, as a new run does.
    """
    if window is not None:  # these detect what may touch within the window, at any state
        return jnp.zeros(impacts.shape, bool)
    return (contacts.active & ~in_envelope(model, contacts)).any(0) | (impacts > 0)


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
    """Return lanes at their initial states. Their first tick has length 0: it only detects contacts.

    window: () or (*batch) length of windows [s]; None: there are none.
    island: (T, *batch) trees that sleep, see `islands_asleep.py`; None: no tree ever sleeps.
    clocks: the clock of each tree.
    max_dt: the longest step, needed if there are several clocks [s].
    """
    clock, apart = start_clock(state.t, frames), clocks.apart(max_dt)
    if apart is not None:
        clock = start_island_clocks(clock, trees_of(model.topology).n, apart)

    def initial() -> Ready:
        ranges = detection_ranges(rules, model, state.q, state.v, state.t, jnp.zeros_like(state.t), apart)
        here = detect_and_determine(rules, model, state, ranges, window, island)
        detected, drive = (here.bounds, here.contacts, here.rows), controller(model, state, no)
        return skip_preparation(rules, model, state, *detected, drive, here.reach, clock.left)

    no = jnp.zeros(state.t.shape, jnp.int32)
    ready = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(initial))._replace(state=state)
    ready = ready if window is None else ready._replace(load=ready.u)
    counts = Counts.none(state.t)
    late = jnp.zeros((trees_of(model.topology).n, *state.t.shape), state.q.dtype)
    if window is not None:
        window = jnp.broadcast_to(window, state.t.shape).astype(state.t.dtype)
    windows = None if window is None else Window(window, no == 0, state.t, no > 0)
    search = Search.new(clock.left, Correction.none(model, state.t, clock.left, bool(rules.report)), windows)
    lane = Lane(ready, search, clock, counts, no, no > 0, no == 0, late, no > 0, island, clocks)
    return lane._replace(tried=initial_proposal(rules, model, lane))
