"""One frame of a game, with a limited number of ticks, and the contacts within.

`run` goes on until it is done; a frame has a limited number of ticks. When they are used up, the rest of its time
passes in windows (`window.py`), with the same number of ticks again and two more for each window. In a run without
windows, or when these ticks are used up too, the frame stops at the last accepted state and returns the time left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..contact.cone.blocks import block, put
from ..contact.contacts import Contacts, tangents
from ..contact.determine import in_envelope
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import last_row
from ..engine.model import Model
from ..engine.results import EVENTS_FULL, OK, gravest
from ..engine.state import State
from .clock import Frames
from .islands_asleep import dofs_asleep, put_to_sleep
from .lanes import Lane
from .motion.forces import Drive
from .proposal import Proposal
from .recording import Events, Record, events_of
from .rules import Rules
from .step import first_lane, tick
from .ticks import run_ticks

STEPS, ROWS = 16, 2**12  # steps and rows of resting contacts that are kept in a frame; at least two steps


class Touching(NamedTuple):
    """Contacts of an instant or a step, C rows.

    pair: (C,) row of `topology.pairs`; -1 for joint limits and empty rows.
    point: (C, 3) contact point in the world [m].
    normal: (C, 3) unit normal in the world, from B to A.
    impulse: (C, 3) impulse of a resting contact on A over the step, world axes [N s].
    """

    pair: Array
    point: Array
    normal: Array
    impulse: Array


class Frame(NamedTuple):
    """The result of a frame.

    state: the state at its end.
    left: () time that did not pass, 0 if all of it did [s].
    ticks: () number of ticks.
    before, after: contacts at its start and at its end.
    impacts: impacts in order; impulses in world axes.
    during: resting contacts of its steps, in order; beyond the capacity, later steps are added up.
    code: () result code; OK even if the ticks were used up.
    contacts: () the most contacts at one time.
    pairs: () near pairs, if their capacity was exceeded; otherwise 0.
    windows: () number of windows.
    island: (T,) trees that sleep at its end, see `islands_asleep.py`.
    slept: (T,) time that each tree slept [s].
    """

    state: State
    left: Array
    ticks: Array
    before: Touching
    after: Touching
    impacts: Events
    during: Touching
    code: Array
    contacts: Array
    pairs: Array
    windows: Array
    island: Any
    slept: Array


class FrameLog(NamedTuple):
    """What a frame records of its ticks.

    rows: () number of rows of `during` that are real.
    before, during, slept: see `Frame`.
    """

    record: Record
    before: Touching
    during: Touching
    rows: Array
    slept: Array


def frame(
    static: tuple[Rules, int, float | None],
    model: Model,
    state: State,
    drive: Drive,
    island: Array,
    quiet: Array,
    *bounds: Array,
) -> Frame:
    """Run the frame of one scene.

    static: rules; capacity for impacts; speed below which trees may fall asleep (`put_to_sleep`), None: none may.
    island: (T,) trees that sleep at its start.
    quiet: (T,) bool, trees that may fall asleep.
    bounds: () length of the frame [s], longest step [s], most ticks, and length of windows [s] if there are any.
    """
    (rules, most_impacts, sleeps), (dt, max_dt, max_ticks, *windows) = static, bounds
    model, interval = rules.adapt_rest_speed(model, max_dt), Frames(dt, dt, jnp.int32(1))
    controller = lambda *_: drive  # noqa: E731
    start = first_lane(rules, model, state, interval, controller, windows[0] if windows else None, island)
    most = sum((2 * dt / window for window in windows), start=0.0) + max_ticks * (1 + len(windows))
    nothing = _touching(start.ready.contacts, in_envelope(model, start.ready.contacts))
    room = len(nothing.pair) * max(2, min(STEPS, ROWS // len(nothing.pair)))
    during = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], (room, *x.shape[1:])), nothing)

    def one(ticks: Array, lane: Lane, log: FrameLog) -> tuple[Lane, FrameLog]:
        if windows:
            lane = lane.in_windows(ticks >= max_ticks)
        ticked = tick(rules, model, lane, interval, max_dt, controller)
        accepted = ticked.lane.counts.rollbacks == lane.counts.rollbacks
        rested = _touching(lane.ready.contacts, *_impulses(ticked.step))
        during, rows = _append_rows(log.during, log.rows, rested, accepted & ~lane.fresh)
        record = ticked.log_impacts(log.record)
        there = _touching(ticked.contacts, in_envelope(model, ticked.contacts))
        before = jax.tree.map(lambda new, old: jnp.where(ticks == 0, new, old), there, log.before)
        slept = log.slept + jnp.where(_asleep(lane), lane.clock.left - ticked.lane.clock.left, 0)
        return ticked.lane, FrameLog(record, before, during, rows, slept)

    slept = jnp.zeros(island.shape, state.q.dtype)
    first = FrameLog(Record.new(state, 0, most_impacts), nothing, during, jnp.int32(0), slept)
    ticks, lane, (record, before, during, _, slept) = run_ticks(one, start, first, most)
    left = jnp.where(lane.done, 0, lane.clock.left)
    code = gravest(lane.code, jnp.where(record.missed > 0, EVENTS_FULL, OK))
    most_at_once = lane.counts.contacts, lane.counts.pairs, lane.counts.windows
    after, impacts = lane.ready.contacts, _in_world(events_of(record, rules.law))
    there, end, last = _touching(after, in_envelope(model, after)), lane.ready.state, lane.island
    if sleeps is not None and last is not None:
        rests = after, lane.ready.rows, quiet & lane.done
        last = put_to_sleep(model, last, state, end, *rests, sleeps, drive.motors)
        end = State(end.q, jnp.where(dofs_asleep(model.topology, last), 0, end.v), end.t) if sleeps else end
    return Frame(end, left, ticks, before, there, impacts, during, code, *most_at_once, last, slept)


def _impulses(step: Proposal) -> tuple[Array, Vec3]:
    """Return the contacts (C,) with an impulse over a step or at its start, and this impulse; impacts are logged."""
    if step.first_impulse is None:
        return step.resting, step.impulse
    return step.resting | (step.first_impulse.z > 0), step.impulse + step.first_impulse


def _asleep(lane: Lane) -> Array:
    assert lane.island is not None
    return lane.island >= 0


def _touching(contacts: Contacts, real: Array, impulse: Vec3 | None = None) -> Touching:
    """Return the contacts as `Touching`.  impulse: in the contact frames; None: 0."""
    vectors = contacts.point, contacts.frame.rows[2], contacts.frame.T @ impulse if impulse else contacts.point * 0
    return Touching(jnp.where(real, contacts.pair, -1), *(jnp.stack(v.xyz, -1) for v in vectors))


def _append_rows(log: Touching, rows: Array, new: Touching, keep: Array) -> tuple[Touching, Array]:
    """Append the rows of a step to the log if they are to be kept; return the log and its number of real rows.

    rows: () number of real rows so far. Without room, the impulse of a pair is added to that in the log's last rows.
    """
    own, kept = len(new.pair), len(log.pair)
    real = jnp.where(keep, last_row(new.pair >= 0), 0)
    fits = rows + real <= kept - own

    def one(k: Array, log: Touching) -> Touching:
        pair, *vectors = (block(x, k) for x in new)
        behind = lambda: (rows + k, jnp.array(False), jnp.array(True))  # noqa: E731
        at, old, there = jax.lax.cond(fits, behind, lambda: _row_of(pair, log.pair[-own:], kept - own))
        vectors[-1] = vectors[-1] + jnp.where(old, block(log.impulse, at), 0)
        return Touching(
            *(put(x, jnp.where(there, y, block(x, at)), at) for x, y in zip(log, (pair, *vectors), strict=True))
        )

    return jax.lax.fori_loop(0, real, one, log), jnp.where(fits, rows + real, rows)


def _row_of(pair: Array, pairs: Array, start: int) -> tuple[Array, Array, Array]:
    """Find the first row of a pair among the log's last rows, which begin at `start`, else the first free one.

    Return the row, whether it is the pair's, and whether it exists.
    """
    same, free = pairs == pair, pairs < 0
    old = same.any()
    at = start + jnp.argmax(jnp.where(old, same, free)).astype(jnp.int32)
    return at, old, (pair >= 0) & (old | free.any())


def _in_world(events: Events) -> Events:
    """Return the impacts with impulses in world axes, except at joint limits."""
    frames = tangents(Vec3.of(events.normal))
    world = jnp.stack((frames.T @ Vec3.of(events.impulse)).xyz, -1)
    impulse = jnp.where((events.pair >= 0)[..., None], world, events.impulse)
    return Events(**{**vars(events), "impulse": impulse})
