"""Rollouts: a state run forward and recorded at regular frames. No contacts yet: free motion only."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine import results
from ..engine.algebra.fence import available, one_function
from ..engine.forest import Forest
from ..engine.model import Model
from ..engine.state import State
from .schemes import scheme_named

Control = Callable[[Model, State, Array], Array]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rollout:
    """What a rollout recorded; a batch adds one leading axis to every field.

    t: (frames,) [s].  q: (frames, nq).  v: (frames, nv).  code: () result code, see `engine.results`.
    state: the last state.  The first frame is the state the rollout began with.
    """

    t: Array
    q: Array
    v: Array
    code: Array
    state: State


def rollout(
    model: Model,
    state: State,
    *,
    duration: float,
    frame_dt: float = 1 / 60,
    max_dt: float = 1 / 240,
    control: Control | Array | None = None,
    scheme: str = "exact",
    throw: bool = True,
) -> Rollout:
    """Run a scene, or a batch of scenes, for `duration` seconds.

    state: one scene, or a batch with one leading axis (`carom.tile`).  Any model parameter may be batched too.
    frame_dt: time between recorded frames [s]; the last frame is at `duration` whether or not it divides.
    max_dt: longest step [s]; every frame is cut into equal steps no longer than this.
    control: what the motors are told: None (their targets), (nv,), one row a frame (frames - 1, ..., nv), or a
        function (model, state, t) -> (..., nv) called every step.
    scheme: exact | rk4 | lie_midpoint | semi_implicit.
    throw: raise if a lane fails; else, and always inside jit, look at `.code`.
    """
    times = _frame_times(duration, frame_dt, max_dt)
    step = scheme_named(scheme)
    state = _batched(model, state)
    intervals = np.diff(times)
    substeps = max(1, math.ceil(frame_dt / max_dt - 1e-9))
    rows, function = _control_rows(control, len(intervals), model.topology.nv, state)
    inside_jit = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((model, state, rows)))
    run = _run if inside_jit or function is not None else _run_fastest
    final, (t, q, v) = run(model, state, jnp.asarray(intervals, state.q.dtype), rows, step, function, substeps)
    well = jnp.isfinite(q).all(-1) & jnp.isfinite(v).all(-1)
    code = jnp.where(well.all(-1), results.OK, results.NOT_FINITE)
    if throw and not inside_jit:
        results.raise_for(code, jnp.where(well, t, -jnp.inf).max(-1))
    return Rollout(t, q, v, code, final)


@functools.partial(jax.jit, static_argnums=(4, 5, 6))
def _run(model: Model, state: State, intervals: Array, rows: Array | None, step: Any, function: Any, substeps: int):
    def frame(state: State, inputs: tuple[Array, Array | None]) -> tuple[State, State]:
        dt, row = inputs
        h = dt / substeps

        def substep(_: int, state: State) -> State:
            told = row if function is None else function(model, state, state.t)
            return step(model, state, h, told)

        state = jax.lax.fori_loop(0, substeps, substep, state)
        return state, state

    final, later = jax.lax.scan(frame, state, (intervals, rows))
    lanes = state.t.ndim
    recorded = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), state, later)
    return final, tuple(jnp.moveaxis(x, 0, lanes) for x in (recorded.t, recorded.q, recorded.v))


@functools.partial(jax.jit, static_argnums=(4, 5, 6))
def _run_one_function(*arguments: Any):
    return one_function(_run(*arguments))


def _run_fastest(model: Model, state: State, *arguments: Any):
    """`_run`, for a single scene as one machine function where the compiler can do that."""
    program = (model.topology, state.q.dtype, *arguments[2:])
    if available() and state.q.size == model.topology.nq and program not in _IN_PIECES:
        try:
            return _run_one_function(model, state, *arguments)
        except jax.errors.JaxRuntimeError:
            _IN_PIECES.add(program)
    return _run(model, state, *arguments)


_IN_PIECES: set[Any] = set()  # programs that did not compile to one function


def _frame_times(duration: float, frame_dt: float, max_dt: float) -> np.ndarray:
    for name, value in (("duration", duration), ("frame_dt", frame_dt), ("max_dt", max_dt)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"rollout: {name} is {value!r}; it must be a positive number of seconds")
    frames = math.floor(duration / frame_dt + 1e-9)
    times = np.arange(frames + 1) * frame_dt
    return times if duration - times[-1] < 1e-9 * duration else np.append(times, duration)


def _batched(model: Model, state: State) -> State:
    """The state with one lane for each lane of the model, and its clock too."""
    topology, batch = model.topology, Forest.of(model, q=state.q, v=state.v).batch
    return State(
        jnp.broadcast_to(state.q, (*batch, topology.nq)),
        jnp.broadcast_to(state.v, (*batch, topology.nv)),
        jnp.broadcast_to(state.t, batch),
    )


def _control_rows(control: Any, n: int, nv: int, state: State) -> tuple[Array | None, Control | None]:
    if control is None:
        return None, None
    if callable(control):
        return None, cast(Control, control)
    rows = jnp.asarray(control, state.q.dtype)
    if rows.shape == (nv,):
        return jnp.broadcast_to(rows, (n, nv)), None
    lanes = state.t.shape
    if rows.shape not in ((n, nv), (n, *lanes, nv)):
        raise ValueError(
            f"rollout: control has shape {rows.shape}; give ({nv},) for a constant, or one row for each of the {n} "
            f"intervals between frames: {(n, nv)}" + (f" or {(n, *lanes, nv)}" if lanes else "")
        )
    return rows, None


def tile(state: State, lanes: int) -> State:
    """A batch of equal states: every field with one leading axis of length `lanes`."""
    if lanes < 1:
        raise ValueError(f"tile: lanes is {lanes}; it must be at least 1")
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (lanes, *jnp.shape(x))), state)
