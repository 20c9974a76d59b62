"""A run: ticks until every lane has reached its last frame. Lanes never wait for each other at frames.

`lane_map.py` decides which lanes run side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..engine.algebra.fence import lane_programs
from ..engine.model import Model
from ..engine.native.function import native
from ..engine.native.open_arrays import Open, OpenRecord
from ..engine.native.program import in_derivative
from ..engine.packed import Packed, unpack_model
from ..engine.results import EVENTS_FULL, OK, TICKS_CAPPED, gravest
from ..engine.state import State
from .clock import Frames
from .clock_assignment import clocks_may_differ, one_island
from .clocks import ONE
from .control import controller_of
from .lanes import Counts, Lane
from .motion.forces import Drive
from .prepare import Controller
from .readouts.report import readings
from .recording import Record
from .rules import Rules
from .sleep import may_sleep, skip_sleeping_frames
from .step import first_lane, tick
from .ticks import run_ticks

TICKS_A_CHECK = 4  # ticks between two checks whether all lanes are done, on devices other than the CPU


class Ran(NamedTuple):
    """The end of a run.

    state: the last state.
    code: (*batch) result code.
    counts: statistics.
    reached: (*batch) number of frames recorded.
    record: frames and events.
    useful: (*batch) part of the program's ticks in which the lane was not done yet.
    """

    state: State
    code: Array
    counts: Counts
    reached: Array
    record: Record
    useful: Array


def run(
    rules: Rules,
    model: Model,
    state: State,
    frames: Frames,
    max_dt: Array,
    controller: Controller,
    record: Record,
    max_ticks: Array | int,
    reverse: bool = False,
    sleeps: bool = False,
    window: Array | None = None,
    cuts: bool = False,
) -> Ran:
    """Run one scene, or lanes along one axis.

    record: an empty record.
    max_ticks: () most ticks of each lane.
    reverse: run a loop that can be differentiated in reverse mode; max_ticks is then a Python number, and the log of
        impacts has no derivative.
    sleeps: whether lanes may sleep.
    window: () length of windows [s]; None: there are none.
    cuts: whether the islands of one scene have their own clocks.
    """
    model = rules.adapt_rest_speed(model, max_dt)
    clocks = one_island(model.topology) if cuts else ONE
    first = first_lane(rules, model, state, frames, controller, window, clocks=clocks, max_dt=max_dt)
    record = record.with_frame(jnp.zeros(state.t.shape, jnp.int32), state)

    def one(_: Array, lane: Lane, record: Record) -> tuple[Lane, Record]:
        number = lane.clock.frame
        ticked = tick(rules, model, lane, frames, max_dt, controller)
        after = ticked.lane.ready.state
        record = record.with_frame(number - lane.fresh, after)
        if reverse:
            kept = record.frames
            record = stop_gradient(ticked).log_impacts(stop_gradient(record))._replace(frames=kept)
        else:
            record = ticked.log_impacts(record)
        if rules.report:
            more = readings(rules.report, model, lane, ticked)
            record = record.with_readings(number, more, ticked.lane.clock.frame > number, lane.done)
        if sleeps:
            return skip_sleeping_frames(model, ticked.lane, record, frames, controller, max_dt)
        return ticked.lane, record

    a_check = 1 if lane_programs() else TICKS_A_CHECK
    ticks, lane, record = run_ticks(one, first, record, max_ticks, reverse=reverse, a_check=a_check)
    code = gravest(lane.code, jnp.where(lane.done, OK, TICKS_CAPPED))
    if record.logs:
        code = gravest(code, jnp.where(record.missed > 0, EVENTS_FULL, OK))
    useful = lane.counts.ticks / jnp.maximum(ticks, 1)
    return Ran(lane.ready.state, code, lane.counts, lane.clock.frame, record, useful)


@native
def run_lane(
    static: tuple[Rules, Drive],
    model: Packed | Model,
    state: State,
    rows: Drive,
    record: Record,
    frames: Frames,
    max_dt: Array,
    max_ticks: Array,
    window: Array | None = None,
) -> Ran:
    """Run one scene as a separate program for any number of frames and events.

    static: rules, and the functions of the drive.
    rows, record: rows of the drive, and an empty record; both and the result's record are open, see `open_record`.
    """
    rules, functions = static
    record, rows = close_record(record), jax.tree.map(lambda x: x.array, rows, is_leaf=lambda x: isinstance(x, Open))
    sleeps = may_sleep(model.topology, functions) and not rules.report
    cuts = clocks_may_differ(rules, model.topology) and functions == Drive() and window is None and not in_derivative()
    ran = run(
        rules, unpack_model(model), state, frames, max_dt, controller_of(rows, functions), record, max_ticks,
        sleeps=sleeps, window=window, cuts=cuts,
    )  # fmt: skip
    return ran._replace(record=open_record(ran.record))


@native
def run_lane_reversible(
    static: tuple[Rules, Drive, int, tuple[int, int, int]],
    model: Packed | Model,
    state: State,
    rows: Drive,
    frames: Frames,
    max_dt: Array,
) -> Ran:
    """Run one scene as a separate program that has a derivative in reverse mode.

    static: rules, the functions of the drive, most ticks, and the sizes of the record.
    rows: rows of the drive.
    """
    rules, functions, max_ticks, sizes = static
    record, controller = Record.new(state, *sizes), controller_of(rows, functions)
    return run(rules, unpack_model(model), state, frames, max_dt, controller, record, max_ticks, reverse=True)


def open_record(record: Record) -> Record:
    """Return the record with open arrays, whose length may vary in one program."""
    return record._replace(
        frames=OpenRecord(record.frames),
        floats=OpenRecord(record.floats) if record.logs else record.floats,
        wholes=OpenRecord(record.wholes) if record.logs else record.wholes,
        readings=None if record.readings is None else OpenRecord(record.readings),
    )


def close_record(record: Record) -> Record:
    """Return the record with its open arrays as plain ones, the inverse of `open_record`."""
    return jax.tree.map(lambda x: x.array if isinstance(x, Open) else x, record, is_leaf=lambda x: isinstance(x, Open))
