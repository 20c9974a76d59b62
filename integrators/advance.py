"""Advance a scene by exactly dt with all events, without a record."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Unpack, overload

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine import results
from ..engine.algebra.fence import lane_programs
from ..engine.forward_only import forward_only
from ..engine.model import Model
from ..engine.native.open_arrays import Open
from ..engine.packed import Packed, is_traced, lanes_of, pack_model, unpack_model
from ..engine.shaped import Real
from ..engine.state import State
from .batch import some_lanes
from .capacity import CapacityNeeds, with_enough_capacity
from .clock import Frames, as_array
from .control import Control, Orders, controller_of, hold_over_steps
from .free import FreeScheme, run_free, run_free_native
from .lane_map import over_lanes
from .motion.forces import Drive
from .options import OptionKeywords, Options, check_seconds
from .readouts.report import Report, make_report, reporting, width, with_sensors
from .recording import Record
from .rollout import broadcast_state, has_limits
from .rules import Rules
from .run import Ran, close_record, open_record, run, run_lane

Advanced = tuple[State, Array, Array, Array, Report]

_FORWARD = (
    "carom.step: its ticks have no end known beforehand, so reverse mode (jax.grad, jax.vjp) cannot go back through "
    "them: take forward mode (jax.jvp, jax.jacfwd), or carom.rollout with reverse=True and max_ticks"
)
TICKS = 1000  # steps tried for each sixtieth of a second, after which a lane is stopped


@overload
def step(model: Model, state: State, *, dt: float, report: None = None, **keywords: Any) -> State: ...
@overload
def step(
    model: Model, state: State, *, dt: float, report: str | Sequence[str], **keywords: Any
) -> tuple[State, Report]: ...
def step(  # pyright: ignore[reportInconsistentOverload]  # keywords: all below
    model: Model,
    state: State,
    *,
    dt: float,
    control: Control | Real[Array, "*#batch nv"] | None = None,
    forces: Control | Real[Array, "*#batch nv"] | None = None,
    report: str | Sequence[str] | None = None,
    throw: bool = True,
    options: Options | None = None,
    **keywords: Unpack[OptionKeywords],
) -> State | tuple[State, Report]:
    """Advance one scene or a batch by dt seconds, with the impacts, rests and slides within, and return the state.

    control, forces: None, (nv,) or (lanes, nv) for the whole of dt, or a function, as for `carom.rollout`.
    report: names of quantities to report, see `carom.rollout`; the result is then the state and the report,
        name -> (...).
    throw: raise if a lane fails; inside jit nothing is raised, and a lane that fails stays where it failed.
    options: see `carom.Options`.  keywords: fields of the options, which override `options`.

    It may be jitted, mapped, and differentiated in forward mode; the times of impacts are differentiated too.
    """
    check_seconds("dt", dt)
    options = Options.of(options, keywords)
    max_dt, window, max_ticks = options.max_dt, options.window, options.max_ticks
    state = broadcast_state(model, state)
    rules = Rules.of(options, has_limits(model))
    rules.check(model)
    rules = reporting(rules, report or (), model.topology)
    nv = model.topology.nv
    motors, pushes = hold_over_steps("control", control, nv, state), hold_over_steps("forces", forces, nv, state)
    rows, functions = Orders.of(motors, pushes, 1, nv, state)
    dtype = state.q.dtype
    interval, longest = as_array(dt, dtype), as_array(max_dt, dtype)
    frames = Frames(interval, interval, as_array(1, jnp.int32))
    given = isinstance(dt, (int, float)) and isinstance(max_dt, (int, float))
    if given and not model.topology.pairs and not rules.limits and not rules.report:
        alone = not (is_traced(model) or any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((state, rows))))
        steps = max(1, math.ceil(dt / max_dt - 1e-9))
        handed = model if lanes_of(model) or not lane_programs() else pack_model(model)
        room, readings = (), {}
        after, code = _advance_free((rules.scheme, functions, steps, alone), handed, state, frames, rows)
    else:
        most = max(TICKS, math.ceil(TICKS * 60 * dt)) if given and max_ticks is None else max_ticks or 100 * TICKS
        bounds = longest, as_array(most, np.int32), *(() if window is None else (as_array(window, dtype),))
        numbers = pack_model(model) if lane_programs() else model, state, frames, rows, *bounds

        def some(rules: Rules, _: int, lanes: np.ndarray | None) -> Advanced:
            return _advance(rules, functions, *(numbers if lanes is None else some_lanes(numbers, lanes)))

        inside_jit = any(isinstance(x, jax.core.Tracer) for x in (state.q, state.v, interval, longest)) or is_traced(
            model
        )
        scene = None if inside_jit else model.topology  # `capacity.py` checks for other traced values
        after, code, *room, readings = with_enough_capacity(
            some, rules, lambda ran: CapacityNeeds(*ran[1:4]), scene=scene
        )
        after, readings = forward_only((after, readings), _FORWARD)
    if throw and not isinstance(code, jax.core.Tracer) and not isinstance(after.t, jax.core.Tracer):
        results.raise_for(code, after.t, dict(zip((results.CONTACTS_FULL, results.PAIRS_FULL), room, strict=False)))
    if report is None:
        return after
    names = (report,) if isinstance(report, str) else report
    return after, with_sensors(readings, names, model, after.q, after.v, False)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _advance(
    rules: Rules, functions: Drive, model: Packed | Model, state: State, frames: Frames, rows: Drive, *bounds: Array
) -> Advanced:
    """Return the state, the code, the needed capacities for contacts and near pairs (`capacity.py`), and the report.

    bounds: longest step [s], most ticks, and length of windows [s] if there are any."""

    topology, dt = model.topology, frames.dt

    def finish(ran: Ran) -> Advanced:
        report: Report = {}
        if rules.report:
            report = make_report(rules.report, topology, close_record(ran.record).readings[..., -1, :], dt)
        return ran.state, ran.code, ran.counts.contacts, ran.counts.pairs, report

    def native(model: Packed | Model, state: State, rows: Drive, record: Record) -> Advanced:
        inputs = jax.tree.map(Open, rows)
        return finish(run_lane((rules, functions), model, state, inputs, open_record(record), frames, *bounds))

    record = Record.new(state, 1, 0, width(rules.report, topology))
    if lane_programs():
        return over_lanes(native, model, state, rows, record)
    longest, most, *windows = bounds
    window = windows[0] if windows else None
    controller = controller_of(rows, functions)
    return finish(run(rules, unpack_model(model), state, frames, longest, controller, record, most, window=window))


@functools.partial(jax.jit, static_argnums=0)
def _advance_free(
    static: tuple[str, Drive, int, bool], model: Packed | Model, state: State, frames: Frames, rows: Drive
) -> tuple[State, Array]:
    """Advance a scene in which nothing can touch."""
    name, functions, substeps, alone = static
    scheme = FreeScheme(name, watched=False)  # called for every step of a loop, where it would cost too much
    if functions == Drive() and lane_programs():
        after, code, _ = run_free_native((scheme, 1, substeps, alone), model, state, frames, rows)
    else:
        after, code, _ = run_free(
            scheme, unpack_model(model), state, frames, 1, controller_of(rows, functions), substeps
        )
    return after, code
