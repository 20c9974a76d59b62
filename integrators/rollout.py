"""Rollouts: runs of a state, or a batch of states, recorded at regular frames, with every impact."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, Unpack

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine import results
from ..engine.algebra.fence import lane_programs
from ..engine.display import Row, count, display_as, lanes_text, numbers, values
from ..engine.forest import Forest
from ..engine.forward_only import forward_only
from ..engine.model import Model
from ..engine.native.open_arrays import Open
from ..engine.packed import Packed, is_traced, lanes_of, once_a_model, pack_model, unpack_model
from ..engine.shaped import Float, Int, Real
from ..engine.state import State
from .batch import at_hand, refuse_explicit_sharding, run_batch, some_lanes
from .capacity import NO_LOG, CapacityNeeds, LogCapacity, with_enough_capacity
from .clock import Frames, as_array
from .control import Control, Orders, controller_of
from .free import FreeScheme, run_free, run_free_native
from .lane_map import over_lanes
from .motion.forces import Drive
from .open_loops import warn_of_open_loops
from .options import WHOLE, OptionKeywords, Options, check_count
from .readouts.report import Report, make_report, reporting, width, with_sensors
from .recording import Events, Record, events_of, frames_of
from .rules import Rules
from .run import Ran, close_record, open_record, run, run_lane, run_lane_reversible
from .stiff_joints import warn_of_stiff_joints


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Stats:
    """Statistics of every lane (...).

    ticks: steps that were tried.
    rollbacks: steps that were rejected or corrected.
    impacts: impacts.
    resting: resting and sliding contacts, summed over the steps.
    max_penetration: the deepest overlap of an accepted state [m, at joint limits rad or m].
    useful: part of the program's ticks in which the lane was not done yet.
    contacts: the most contacts at one time.
    pairs: near pairs, if their capacity was exceeded; otherwise 0.
    windows: steps that were windows.
    """

    ticks: Int[Array, "*batch"]
    rollbacks: Int[Array, "*batch"]
    impacts: Int[Array, "*batch"]
    resting: Int[Array, "*batch"]
    max_penetration: Float[Array, "*batch"]
    useful: Float[Array, "*batch"]
    contacts: Int[Array, "*batch"]
    pairs: Int[Array, "*batch"]
    windows: Int[Array, "*batch"]


def described_run(run: Any) -> tuple[str, list[Row]]:
    """Return title and rows that describe a rollout or a recording."""
    times, t = getattr(run.t, "shape", ()), values(run.t)
    span = "" if t is None or not np.isfinite(t).any() else f" from {np.nanmin(t):.4g} to {np.nanmax(t):.4g} s"
    head = f"{count(times[-1], 'frame') if times else '?'}{span}{lanes_text(times[:-1])}"
    if t is None:
        return head, [(name, numbers(getattr(run, name))) for name in ("t", "q", "v", "code")]
    stats = run.stats if isinstance(run.stats, Mapping) else vars(run.stats)
    rows = [("what happened", run.why().splitlines()[0]), ("impacts", _impacts(run.events))]
    rows += [("ticks, rollbacks", ", ".join(numbers(stats[name]) for name in ("ticks", "rollbacks")))]
    rows += [("deepest overlap", numbers(stats["max_penetration"])), ("last q", numbers(run.q[..., -1, :]))]
    return head, rows


def _impacts(events: Events) -> str:
    logged, missed, t = (np.asarray(x) for x in (events.count, events.missed, events.t))
    real = t[np.arange(t.shape[-1]) < logged[..., None]] if t.size else t
    span = f", from {real.min():.6g} to {real.max():.6g} s" if real.size else ""
    return f"{logged.sum()}{span}" + (f", and {missed.sum()} that were not logged" if missed.any() else "")


AnyState = TypeVar("AnyState")

MOST_FRAMES = 10_000_000  # frames of a run: a gigabyte for each free body
_FORWARD = (
    "rollout: reverse mode (jax.grad, jax.vjp) goes back through every tick: give reverse=True and max_ticks, how many "
    "there may be (see .stats.ticks of a run), or take forward mode (jax.jvp, jax.jacfwd)"
)
MOST_STEPS = 1_000_000  # steps of max_dt between two frames


@display_as(described_run)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rollout:
    """The record of a rollout; a batch adds one leading axis to every field.

    The first frame is the first state of the rollout. Frames that a lane did not reach are NaN.

    t: time [s].
    q: coordinates.
    v: velocities.
    events: every impact.
    code: a `carom.Code`; `why()` says it in words.
    stats: statistics.
    state: the last state. If a run stopped between frames, islands with separate clocks may be at different times.
    report: name -> (frames, ...), the quantities named by `report=`, for the interval that ends with each frame; 0 at
        the first.
    """

    t: Float[Array, "*batch frames"]
    q: Float[Array, "*batch frames nq"]
    v: Float[Array, "*batch frames nv"]
    events: Events
    code: Int[Array, "*batch"]
    stats: Stats
    state: State
    report: Report = field(default_factory=dict)

    def why(self) -> str:
        """The outcome in words: "finished", or a line for each code with its lanes, the time, and a remedy."""
        code, t, q, v = at_hand(self.code, self.t, self.q, self.v)
        return results.why(code, results.last_well(t, q, v))


def rollout(
    model: Model,
    state: State,
    *,
    duration: float,
    frame_dt: float = 1 / 60,
    control: Control | Real[Array, "... nv"] | None = None,
    forces: Control | Real[Array, "... nv"] | None = None,
    report: str | Sequence[str] = (),
    reverse: bool = False,
    devices: int | Sequence[Any] | None = None,
    chunk: int | None = None,
    throw: bool = True,
    options: Options | None = None,
    **keywords: Unpack[OptionKeywords],
) -> Rollout:
    """Run a scene, or a batch of scenes, for `duration` seconds.

    state: one scene, or a batch with one leading axis (`carom.tile`).  Any model parameter may be batched too.
    frame_dt: time between recorded frames [s]; the last frame is at `duration` even if frame_dt does not divide it. A
        run has at most ten million frames.
    control: motor commands: None (the motors' targets); an array (nv,), (lanes, nv), or one row for each interval
        between frames (frames - 1, nv), (lanes, frames - 1, nv); or a function (model, state, t) -> (..., nv) that is
        called at the start of every step and held until its end. A feedback is thus of order 1 in max_dt, and a spring
        made so gains energy: let stiffness=, damping= and position motors of the scene do that. A degree of freedom
        without a motor takes its command as a force.
    forces: external forces along the degrees of freedom [N m, N], in the form of control; `J.T @ wrench` pushes a link.
    report: names of quantities to report for the time between frames, one or several; others are not computed.
        "contact_forces", "contact_impulses" (frames, links, 6): moment about each link's origin and force of its
        contacts, world axes; "pair_forces", "pair_impulses" (frames, pairs, 3): force of each pair of shapes on the
        first; "joint_forces", "joint_impulses" (frames, links, 6): wrench of each joint on its link; "loop_forces",
        "loop_impulses" (frames, loops, 6): of each loop on its link_a, as `carom.loop_wrenches` has it. Forces [N, N m]
        are means of the smooth forces over the time between frames, impulses [N s, N m s] sums over the impacts in it.
        "sensors": name -> (frames, ...) of the scene's sensors, see `SceneBuilder.add_sensor`.
    reverse: prepare for derivatives in reverse mode (`jax.grad`); forward mode does not need it. The run is then a loop
        of exactly max_ticks ticks, which must be given, and stores 2 sqrt(max_ticks) of them. See docs/derivatives.md.
    devices: devices for the lanes: a list, or a number. None: all local devices of jax, if each gets a lane.
    chunk: number of lanes to run at a time if memory is short; results are gathered into numpy arrays.
    throw: raise if a lane fails, warn if one is less exact than it should be or its log is full. Otherwise, and always
        inside jit, look at `.code` and `.why()`.
    options: see `carom.Options`.
    keywords: fields of the options, which override `options`.
    """
    if not isinstance(model, Model):
        given = type(model).__name__
        raise TypeError(f"rollout: takes the Model of a scene, not {given}; for a chain use chain_rollout")
    options = Options.of(options, keywords)
    max_dt, window, max_ticks = options.max_dt, options.window, options.max_ticks
    times = frame_times(duration, frame_dt, max_dt)
    check_count("chunk", chunk, 1)
    if reverse and max_ticks is None:
        raise ValueError("rollout: reverse needs max_ticks, the steps to go back through: see .stats.ticks of a run")
    if reverse and window is not None:
        raise ValueError("rollout: reverse is for derivatives, which a run in windows has not: leave out one of them")
    if reverse and options.resting == "microcollisions":
        raise ValueError('rollout: reverse needs resting="solve" or "penalty"; trains of micro-collisions have no end')
    if reverse and report:
        raise ValueError("rollout: a report has no derivative in reverse mode: leave out report or reverse")
    state = broadcast_state(model, state)
    rules = Rules.of(options, has_limits(model))
    rules.check(model)
    rules = reporting(rules, report, model.topology)
    frames = Frames.of(intervals_of(times, frame_dt), state.q.dtype)
    orders = Orders.of(control, forces, len(times) - 1, model.topology.nv, state)
    static: tuple[Any, ...]
    if model.topology.pairs or rules.limits or rules.report:
        steps = math.ceil(min(frame_dt, duration) / max_dt)
        ticks = min((1000 + 20 * steps) * len(times), WHOLE) if max_ticks is None else max_ticks
        program, static = _with_contacts, (orders.functions, len(times), max_ticks if reverse else None)
        windows = () if window is None else (as_array(window, state.q.dtype),)
        bounds = (as_array(max_dt, state.q.dtype), as_array(ticks, np.int32), *windows)
    else:
        substeps = max(1, math.ceil(frame_dt / max_dt - 1e-9))
        alone = not (
            is_traced(model) or any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((state, orders.rows)))
        )
        program, static, bounds = _without_contacts, (orders.functions, len(times), substeps, alone), ()
    contacts = program is _with_contacts
    handed = pack_model(model) if lane_programs() and (contacts or not lanes_of(model)) else model
    numbers = (handed, state, frames, orders.rows, *bounds)
    new = _nothing()  # a control function may contain traced values, even if no argument is traced
    inside_jit = any(isinstance(x, jax.core.Tracer) for x in (new, *jax.tree.leaves(numbers)))
    if inside_jit and not (devices is None and chunk is None):
        raise ValueError("rollout: devices and chunk are for the host; inside jit, leave them out")
    if inside_jit:
        refuse_explicit_sharding(state)

    if throw and not inside_jit and state.t.ndim == 0:
        warn_of_open_loops(model, state, 2)

    def some(rules: Rules, rows: int, lanes: np.ndarray | None) -> Rollout:
        chosen = (rules, rows, *static)
        if inside_jit or state.t.ndim != 1:
            return program(chosen, *numbers)
        mine = numbers if lanes is None else some_lanes(numbers, lanes)
        return run_batch(program, chosen, devices, chunk, *mine)

    known = inside_jit or getattr(state.t, "is_fully_addressable", True)  # else: other processes have lanes too
    log = LogCapacity.of(state.t.size, options.max_events) if contacts else NO_LOG
    scene = None if inside_jit else model.topology
    result = with_enough_capacity(some, rules, _capacity_needs, log, scene) if known else some(rules, log.rows, None)
    if contacts and not reverse:
        result = forward_only(result, _FORWARD)
    if report:
        names = (report,) if isinstance(report, str) else report
        result = replace(result, report=with_sensors(result.report, names, model, result.q, result.v, True))
    if throw and not inside_jit:
        code, t, q, v = at_hand(result.code, result.t, result.q, result.v)  # in numpy, which compiles nothing
        room = {results.CONTACTS_FULL: result.stats.contacts, results.PAIRS_FULL: result.stats.pairs}
        results.raise_for(code, results.last_well(t, q, v), room if known else None)
        if contacts and result.t.ndim == 1 and rules.time_control != "fixed":  # a single lane
            ticks = int(result.stats.ticks)
            warn_of_stiff_joints(model, state, rules.scheme, float(duration / max_dt), float(max_dt), ticks, 2)
    return result


@jax.jit  # without it, this takes longer than a short step
def _nothing() -> Array:
    return jnp.zeros(())


def _capacity_needs(run: Rollout) -> CapacityNeeds:
    return CapacityNeeds(run.code, run.stats.contacts, run.stats.pairs, run.events.count, run.events.missed)


@functools.partial(jax.jit, static_argnums=0)
def _with_contacts(
    static: tuple[Any, ...],
    model: Packed | Model,
    state: State,
    frames: Frames,
    rows: Drive,
    max_dt: Array,
    max_ticks: Array,
    window: Array | None = None,
) -> Rollout:
    rules, room, functions, slots, iterations = static
    topology = model.topology
    numbers = width(rules.report, topology)
    sizes = slots, room, numbers
    record = Record.new(state, *sizes)

    def native(model: Packed | Model, state: State, rows: Drive, record: Record) -> Ran:
        inputs, log = jax.tree.map(Open, rows), open_record(record)
        ran = run_lane((rules, functions), model, state, inputs, log, frames, max_dt, max_ticks, window)
        return ran._replace(record=close_record(ran.record))

    def reversible(model: Packed | Model, state: State, rows: Drive) -> Ran:
        return run_lane_reversible((rules, functions, iterations, sizes), model, state, rows, frames, max_dt)

    def side_by_side(model: Model, state: State, rows: Drive) -> Ran:
        record, most = Record.new(state, *sizes), max_ticks if iterations is None else iterations
        controller, back = controller_of(rows, functions), iterations is not None
        return run(rules, model, state, frames, max_dt, controller, record, most, back, window=window)

    if not lane_programs():
        ran = side_by_side(unpack_model(model), state, rows)
    elif iterations is None:
        ran = over_lanes(native, model, state, rows, record)
    else:
        ran = over_lanes(reversible, model, state, rows)
    t, q, v = frames_of(topology, ran.record, ran.reached)
    report = {}
    if rules.report:
        dt = jnp.diff(t, axis=-1, prepend=t[..., :1])
        report = make_report(rules.report, topology, ran.record.readings + 0 * t[..., None], dt)
    counts = ran.counts
    stats = Stats(
        counts.ticks, counts.rollbacks, counts.impacts, counts.resting, counts.depth, ran.useful,
        counts.contacts, counts.pairs, counts.windows,
    )  # fmt: skip
    return Rollout(t, q, v, events_of(ran.record, rules.law), ran.code, stats, ran.state, report)


@functools.partial(jax.jit, static_argnums=0)
def _without_contacts(
    static: tuple[Any, ...], model: Packed | Model, state: State, frames: Frames, rows: Drive
) -> Rollout:
    rules, _, functions, slots, substeps, alone = static
    scheme = FreeScheme(rules.scheme, rules.time_control != "fixed")
    if functions == Drive() and lane_programs():
        final, code, (t, q, v) = run_free_native((scheme, slots - 1, substeps, alone), model, state, frames, rows)
    else:
        controller = controller_of(rows, functions)
        final, code, (t, q, v) = run_free(scheme, unpack_model(model), state, frames, slots - 1, controller, substeps)
    none = jnp.zeros(state.t.shape, jnp.int32)
    ticks = none + (slots - 1) * substeps
    stats = Stats(ticks, none, none, none, jnp.zeros_like(state.t), jnp.ones_like(state.t), none, none, none)
    return Rollout(t, q, v, events_of(Record.new(state, 0, 0), rules.law), code, stats, final)


@once_a_model
def has_limits(model: Model) -> bool:
    """Return whether a run checks joint limits: a joint may have limits, or joints can be held and no pairs exist."""
    if any(model.topology.gripped) and not model.topology.pairs:
        return True
    if isinstance(model.lower, jax.core.Tracer) or isinstance(model.upper, jax.core.Tracer):
        return True
    return bool(np.isfinite(model.lower).any() or np.isfinite(model.upper).any())


def frame_times(duration: float, frame_dt: float, max_dt: float) -> np.ndarray:
    """Return the times of the frames, starting at 0 [s]."""
    check_times(duration, frame_dt, max_dt)
    frames = math.floor(duration / frame_dt + 1e-9)
    times = np.arange(frames + 1) * frame_dt
    return times if frames and duration - times[-1] < 1e-9 * duration else np.append(times, duration)


def check_times(duration: float, frame_dt: float = 1 / 60, max_dt: float = 1 / 240) -> None:
    """Raise ValueError if a run cannot have these times."""
    for name, value in (("duration", duration), ("frame_dt", frame_dt), ("max_dt", max_dt)):
        if not (isinstance(value, (int, float, np.number, np.ndarray, Array)) and 0 < value < math.inf):
            raise ValueError(f"rollout: {name} is {value!r}; it must be a positive number of seconds")
    if duration > MOST_FRAMES * frame_dt:
        raise ValueError(
            f"rollout: duration is {duration!r}, and frame_dt {frame_dt!r}; a run has at most {MOST_FRAMES} frames: "
            "give a shorter duration, or a longer frame_dt"
        )
    if frame_dt > MOST_STEPS * max_dt:
        raise ValueError(
            f"rollout: max_dt is {max_dt!r}, and frame_dt {frame_dt!r}; between two frames are at most {MOST_STEPS} "
            "steps: give a longer max_dt, or a shorter frame_dt"
        )


def intervals_of(times: np.ndarray, frame_dt: float) -> np.ndarray:
    """Return the intervals between frames [s]; equal ones are equal to the last bit, so that T + T is 2 T."""
    intervals = np.diff(times)
    intervals[np.abs(intervals - frame_dt) <= 1e-9 * frame_dt] = frame_dt
    return intervals


def broadcast_state(model: Model, state: State) -> State:
    """Return the state, including its time, with one lane for each lane of the model."""
    topology, q, v, t = model.topology, state.q, state.v, state.t
    real = model.mass.dtype
    kinds = {np.dtype(getattr(x, "dtype", real)) for x in (q, v, t)}
    if kinds != {real}:
        raise ValueError(
            f"the state has numbers of {', '.join(sorted(map(str, kinds)))}, the model of {real}: convert the state, "
            f"jax.tree.map(lambda x: x.astype({real.name!r}), state)"
        )
    arrays = isinstance(q, Array) and isinstance(v, Array) and isinstance(t, Array)
    if arrays and q.shape == (topology.nq,) and v.shape == (topology.nv,) and t.shape == () and not lanes_of(model):
        return state
    lanes = *lanes_of(model), *np.shape(t)
    if len(lanes) == 2 and len({*lanes} - {1}) > 1:
        raise ValueError(f"the model has {lanes[0]} lanes, the state {lanes[1]}: they must be as many, or one")
    batch = np.broadcast_shapes(Forest.of(model, q=state.q, v=state.v).batch, lanes_of(model))
    return State(
        jnp.broadcast_to(state.q, (*batch, topology.nq)),
        jnp.broadcast_to(state.v, (*batch, topology.nv)),
        jnp.broadcast_to(state.t, batch),
    )


def tile(state: AnyState, lanes: int) -> AnyState:
    """Return a batch of equal states: every field has one leading axis of length `lanes`."""
    if lanes < 1:
        raise ValueError(f"tile: lanes is {lanes}; it must be at least 1")
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (lanes, *jnp.shape(x))), state)
