"""Rollouts of planar chains: runs of a state, or a batch of states, with every stop at its exact time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine import results
from ...engine.algebra.fence import lane_programs
from ...engine.display import Row, count, display_as, lanes_text, numbers, values
from ...engine.native.blocks import side_by_side
from ...engine.native.function import native
from ...engine.native.open_arrays import Open, OpenRecord
from ...engine.planar.accelerations import may_hold_angles, state_of
from ...engine.planar.links import DriveRows, Rows, drive_rows, rows_of
from ...engine.planar.model import Chain, ChainDrive, ChainState
from ...engine.results import EVENTS_FULL, OK, TICKS_CAPPED, gravest
from ...engine.shaped import Float, Int
from ..clock import Frames
from ..options import MOST_LOG, WHOLE, check_count
from ..rollout import frame_times, intervals_of
from ..ticks import run_ticks
from .chain_step import ChainBounds
from .lane import ChainLane, ChainStats, first_lane
from .record import ChainEvents, ChainRecord, events_of, frames_of, new_record, record_first_frame, record_tick
from .tick import ChainRules, tick

SCHEMES = ("average", "constant")
FIELDS = {"torque": 1, "force": 2, "acceleration": 2, "angular": 1}  # fields of ChainDrive, and their axes

Steering = Callable[[Chain, ChainState, Array], ChainDrive]
ChainControl = ChainDrive | Steering


def _describe(run: ChainRollout) -> tuple[str, list[Row]]:
    times, t = getattr(run.t, "shape", ()), values(run.t)
    head = f"{count(times[-1], 'frame') if times else '?'}{lanes_text(times[:-1])}"
    if t is None:
        return head, [(name, numbers(getattr(run, name))) for name in ("t", "x", "v", "code")]
    rows = [("what happened", run.why().splitlines()[0]), ("t [s]", numbers(run.t))]
    rows += [(name, numbers(getattr(run.stats, name))) for name in ("impacts", "ticks", "stretch")]
    return head, rows


@display_as(_describe)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ChainRollout:
    """The record of a rollout of a chain; a batch adds one leading axis to every field.

    The first frame is the first state of the rollout. Frames that a lane did not reach are NaN.

    t: time [s].
    x, v: positions and velocities of the joints [m, m/s].
    stuck, shut: see `ChainState`.
    events: every stop.
    code: a `carom.Code`; `why()` says it in words.
    stats: statistics.
    state: the last state.
    """

    t: Float[Array, "*batch frames"]
    x: Float[Array, "*batch frames n 2"]
    v: Float[Array, "*batch frames n 2"]
    stuck: Int[Array, "*batch frames n"]
    shut: Int[Array, "*batch frames n"]
    events: ChainEvents
    code: Int[Array, "*batch"]
    stats: ChainStats
    state: ChainState

    def why(self) -> str:
        """The outcome in words: "finished", or a line for each code with its lanes, the time, and a remedy."""
        return results.why(self.code, np.nanmax(self.t, -1))


def chain_rollout(
    model: Chain,
    state: ChainState,
    *,
    duration: float,
    frame_dt: float = 1 / 60,
    max_dt: float = 1 / 240,
    control: ChainControl | None = None,
    scheme: str = "average",
    settle: float | None = None,
    tolerance: float = 1.0,
    max_events: int = 256,
    max_ticks: int | None = None,
    throw: bool = True,
) -> ChainRollout:
    """Run a planar chain, or a batch of chains, for `duration` seconds.

    state: one chain, or a batch with one leading axis (`carom.tile`).  Any field of the model may be batched too.
    frame_dt: time between recorded frames [s]; the last frame is at `duration` even if frame_dt does not divide it.
    max_dt: longest step [s]. Stops are located in time for any max_dt.
    control: external forces: a ChainDrive for the whole run; one whose fields have a row for each interval between
        frames, (frames - 1, ..., n); or a function (model, state, t) -> ChainDrive called every step.
    scheme: "average", the velocity of a step changes with the mean of the accelerations at its ends (order two);
        "constant", with those at its start, as in the report (order one).
    settle: time constant with which links that rounding and finite steps have stretched, and angles at their limits,
        return [s]. None: 5 max_dt, as the report proposes.
    tolerance: a step is halved if a change of acceleration in it would change a velocity by more [m/s].
    max_events: length of a lane's log of stops.
    max_ticks: solves after which a lane is stopped; None: 1000 per frame, and 20 for each of its longest steps.
    throw: raise if a lane fails, warn if one is less exact than it should be or its log is full. Otherwise, and always
        inside jit, look at `.code` and `.why()`.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"chain_rollout: scheme is {scheme!r}; it must be one of {', '.join(SCHEMES)}")
    settle = 5 * max_dt if settle is None else settle
    for name, value in (("settle", settle), ("tolerance", tolerance)):
        if not value > 0:
            raise ValueError(f"chain_rollout: {name} is {value!r}; it must be positive")
    times = frame_times(duration, frame_dt, max_dt)
    check_count("max_ticks", max_ticks, 1)
    check_count("max_events", max_events, 0, MOST_LOG)
    state = broadcast(model, state)
    function = control if callable(control) else None
    rows = ChainDrive() if control is None or callable(control) else per_interval(control, len(times) - 1, state)
    steps = math.ceil(frame_dt / max_dt)
    ticks = min((1000 + 20 * steps) * len(times), WHOLE) if max_ticks is None else max_ticks
    dtype = state.x.dtype
    bounds = ChainBounds(*(jnp.asarray(b, dtype) for b in (max_dt, settle, tolerance)))
    rules = ChainRules(scheme, may_hold_angles(model))
    frames = Frames.of(intervals_of(times, frame_dt), dtype)
    result = _run(rules, function, len(times), max_events, model, state, frames, rows, bounds, ticks)
    if throw and not isinstance(result.code, jax.core.Tracer):
        results.raise_for(result.code, jnp.nanmax(result.t, -1))
    return result


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _run(
    rules: ChainRules,
    function: Steering | None,
    slots: int,
    max_events: int,
    model: Chain,
    state: ChainState,
    frames: Frames,
    drive: ChainDrive,
    bounds: ChainBounds,
    max_ticks: Array,
) -> ChainRollout:
    record = new_record(state, slots, max_events)
    if lane_programs():
        ran = _over_lanes((rules, function), model, state, drive, record, frames, bounds, max_ticks)
    else:
        ran = run_chain(rules, function, model, state, drive, record, frames, bounds, max_ticks)
    lane, record = ran
    code = gravest(lane.code, jnp.where(lane.done, OK, TICKS_CAPPED))
    code = gravest(code, jnp.where(record.missed > 0, EVENTS_FULL, OK)) if max_events else code
    named = frames_of(record, model.n)
    return ChainRollout(**named, events=events_of(record), code=code, stats=lane.stats, state=lane.state)


class Ended(NamedTuple):
    """A lane at its end."""

    state: ChainState
    stats: ChainStats
    code: Array
    done: Array


def run_chain(
    rules: ChainRules,
    function: Steering | None,
    model: Chain,
    state: ChainState,
    drive: ChainDrive,
    record: ChainRecord,
    frames: Frames,
    bounds: ChainBounds,
    max_ticks: Array,
) -> tuple[Ended, ChainRecord]:
    """Run one chain, or lanes along one axis, until all are done. record: a new one."""
    rows = rows_of(model, state.t.shape)
    start = first_lane(rows, state, frames, bounds.max_dt)

    def one(_: Array, lane: ChainLane, record: ChainRecord) -> tuple[ChainLane, ChainRecord]:
        acting = current_drive(rows, model, lane, function, drive)
        after, struck = tick(rules, rows, lane, acting, bounds, frames)
        return after, record_tick(record, rows, lane, after, struck)

    _, lane, record = run_ticks(one, start, record_first_frame(record, start), max_ticks)
    return Ended(state_of(lane.now, lane.t), lane.stats, lane.code, lane.done), record


@functools.partial(native, alike=True)
def _lanes(
    static: tuple[ChainRules, Steering | None],
    model: Chain,
    state: ChainState,
    drive: ChainDrive,
    record: ChainRecord,
    *bounds: *tuple[Frames, ChainBounds, Array],
) -> tuple[Ended, ChainRecord]:
    """Call `run_chain` for one chain or a block of them, as a separate program.

    Arrays of drive and record may have any length; those of a block's record are lane after lane.
    """
    drive, record = (jax.tree.map(_array, x, is_leaf=_is_open) for x in (drive, record))
    ended, record = run_chain(*static, model, state, drive, record, *bounds)
    return ended, _open_record(record)


def _over_lanes(
    static: tuple[ChainRules, Steering | None],
    model: Chain,
    state: ChainState,
    drive: ChainDrive,
    record: ChainRecord,
    *bounds: *tuple[Frames, ChainBounds, Array],
) -> tuple[Ended, ChainRecord]:
    """Run one chain, or lanes in blocks that fill a vector.

    With a control function, which takes one chain, lanes run one by one.
    """

    def run(model: Chain, state: ChainState, drive: ChainDrive, record: ChainRecord) -> tuple[Ended, ChainRecord]:
        ended, record = _lanes(static, model, state, jax.tree.map(Open, drive), _open_record(record), *bounds)
        return ended, jax.tree.map(_array, record, is_leaf=_is_open)

    if not state.t.ndim:
        return run(model, state, drive, record)
    count, wide = len(state.t), 1 if static[1] is not None else side_by_side(state.x.dtype)
    blocks = -(-count // wide)
    leaves, tree = jax.tree.flatten((model, state, drive, record))
    own = [0 if np.ndim(value) > axes else None for _, value, axes in model.axes()]
    own += [0] * len(jax.tree.leaves(state))
    own += [1 if x.ndim == 2 + FIELDS[k] else None for k, x in vars(drive).items() if x is not None]
    own += [0 if jnp.ndim(x) else None for x in jax.tree.leaves(record)]

    def cut(x: Array, axis: int | None) -> Array:
        """Return x (..., lanes, ...) as (blocks, ..., W, ...), with the last lane repeated."""
        if axis is None:
            return x
        if count < blocks * wide:
            x = jnp.take(x, np.minimum(np.arange(blocks * wide), count - 1), axis)
        return jnp.moveaxis(x.reshape(*x.shape[:axis], blocks, wide, *x.shape[axis + 1 :]), axis, 0)

    def laid(record: ChainRecord, *lead: int) -> ChainRecord:
        frames, rows = (x.reshape(*lead, -1, x.shape[-1]) for x in (record.frames, record.rows))
        return record._replace(frames=frames, rows=rows)

    def block(leaves: list[Array]) -> tuple[Ended, ChainRecord]:
        if wide == 1:
            leaves = [x if axis is None else jnp.squeeze(x, axis) for x, axis in zip(leaves, own, strict=True)]
            return jax.tree.map(lambda x: x[None], run(*jax.tree.unflatten(tree, leaves)))
        model, state, drive, record = jax.tree.unflatten(tree, leaves)
        ended, after = run(model, state, drive, laid(record))
        return ended, laid(after, wide)

    some = [cut(*x) for x in zip(leaves, own, strict=True)]
    ended, after = jax.vmap(block, in_axes=([None if axis is None else 0 for axis in own],))(some)
    unblock = lambda x: x.reshape(blocks * wide, *x.shape[2:])[:count]  # noqa: E731
    after = jax.tree.map(unblock, after._replace(room=()))
    return jax.tree.map(unblock, ended), after._replace(room=record.room)


def _open_record(record: ChainRecord) -> ChainRecord:
    rows = OpenRecord(record.rows) if record.logs else record.rows
    return record._replace(frames=OpenRecord(record.frames), rows=rows)  # type: ignore[arg-type]


def _is_open(x: object) -> bool:
    return isinstance(x, Open)


def _array(x: Any) -> Any:
    return x.array if isinstance(x, Open) else x


def current_drive(rows: Rows, model: Chain, lane: ChainLane, function: Steering | None, drive: ChainDrive) -> DriveRows:
    """Return the drive until the next state."""
    if function is not None:
        return drive_rows(rows, function(model, state_of(lane.now, lane.t), lane.t))
    picked = {}
    for name, axes in FIELDS.items():
        x = getattr(drive, name)
        if x is not None:
            frame = lane.clock.frame
            if not frame.ndim:
                picked[name] = jax.lax.dynamic_index_in_dim(x, frame - 1, keepdims=False)
                continue
            of_lane, own = x.ndim == 1 + lane.t.ndim + axes, x.shape[-axes:]
            if lane_programs():  # a block: x may be longer than its static shape
                rest = [jnp.int32(0)] * axes
                at = [
                    (frame[i] - 1, jnp.int32(i), *rest) if of_lane else (frame[i] - 1, *rest) for i in range(len(frame))
                ]
                one = (1,) * (1 + of_lane)
                picked[name] = jnp.stack([jax.lax.dynamic_slice(x, k, (*one, *own)).reshape(own) for k in at])
                continue
            number = jnp.clip(frame - 1, 0, len(x) - 1)
            picked[name] = x[number, jnp.arange(len(number))] if of_lane else x[number]
    return drive_rows(rows, ChainDrive(**picked))


def per_interval(control: ChainDrive, intervals: int, state: ChainState) -> ChainDrive:
    """Return the fields as (intervals, ..., n) or (intervals, ..., n, 2), from those that a user gives."""
    lanes, n, fields = state.t.shape, state.x.shape[-2], {}
    for name, axes in FIELDS.items():
        given = getattr(control, name)
        if given is None:
            continue
        x, own = jnp.asarray(given, state.x.dtype), (n, 2)[:axes]
        if lanes == (intervals,) and x.shape == (intervals, *own):
            raise ValueError(
                f"chain_rollout: control.{name} has shape {x.shape}, and there are as many lanes as intervals between "
                f"frames: give {(intervals, *lanes, *own)}, intervals first"
            )
        constant = [own, *([(*lanes, *own)] if lanes else [])]
        if x.shape in constant:
            x = jnp.broadcast_to(x, (intervals, *x.shape))
        if x.shape not in ((intervals, *own), (intervals, *lanes, *own)):
            raise ValueError(
                f"chain_rollout: control.{name} has shape {x.shape}; give {own} for a constant, or one row for each "
                f"of the {intervals} intervals between frames: {(intervals, *own)}"
                + (f" or {(intervals, *lanes, *own)}" if lanes else "")
            )
        fields[name] = x
    return ChainDrive(**fields)


def broadcast(model: Chain, state: ChainState) -> ChainState:
    """Return the state with one lane for each lane of the model."""
    own = {name: np.ndim(value) - axes for name, value, axes in model.axes()}
    lanes = [np.shape(getattr(model, name))[:extra] for name, extra in own.items()]
    batch = jnp.broadcast_shapes(state.t.shape, state.x.shape[:-2], *lanes)
    if len(batch) > 1:
        raise ValueError(f"chain_rollout: a batch has one axis of lanes, this has {len(batch)}: {batch}")
    n = model.n
    return ChainState(
        jnp.broadcast_to(state.x, (*batch, n, 2)),
        jnp.broadcast_to(state.v, (*batch, n, 2)),
        jnp.broadcast_to(state.t, batch),
        jnp.broadcast_to(state.stuck, (*batch, n)),
        jnp.broadcast_to(state.shut, (*batch, n)),
    )
