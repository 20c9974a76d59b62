"""Runs of scenes in which nothing can touch, with equal steps from frame to frame for all lanes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..engine.model import Model
from ..engine.native.blocks import side_by_side
from ..engine.native.function import native
from ..engine.native.open_arrays import Open, OpenRecord
from ..engine.packed import Packed, unpack_model
from ..engine.results import OK, STEPS_TOO_LONG, finite_code, gravest
from ..engine.state import State
from .clock import Frames, time_after
from .control import controller_of
from .motion.forces import Drive
from .motion.softened import has_joints
from .prepare import Controller
from .resolved import longest_stable_step
from .schemes import DIVIDES, step_and_close


class FreeScheme(NamedTuple):
    """name: of the scheme.  watched: whether the code says that its steps are too long to be stable."""

    name: str
    watched: bool

    def check(self, model: Model, states: Sequence[State], h: Array) -> Array:
        """Return the code (*batch) of steps of length h [s] that lead from the first to the last of some states."""
        if self.name in DIVIDES or not (self.watched and has_joints(model.topology)):
            return jnp.int32(OK)
        model, both = stop_gradient((model, jax.tree.map(lambda *x: jnp.stack(x), *states)))
        stable = jax.lax.map(functools.partial(longest_stable_step, model), both)  # one program for all
        return jnp.where(h > stable.min(0), STEPS_TOO_LONG, OK)


FreeRun = tuple[State, Array, tuple[Array, Array, Array]]  # the last state; result code; t, q, v of all frames


def run_free(
    scheme: FreeScheme, model: Model, state: State, frames: Frames, count: int, controller: Controller, substeps: int
) -> FreeRun:
    """Run, and return the last state, the result code (*batch), and t (*batch, F), q (*batch, F, nq), v (*batch, F, nv)
    of all frames. A lane whose loops come apart is NaN from there on.

    count: number of frames after the first; `substeps` equal steps lead from each to the next.
    """

    def frame(now: tuple[State, Array], inputs: Array) -> tuple[tuple[State, Array], State]:
        state, code = _next(scheme, model, *now, frames, inputs - 1, controller, substeps)
        return (state, code), state

    (final, code), later = jax.lax.scan(frame, (state, _fine(state)), jnp.arange(1, count + 1))
    code = gravest(code, scheme.check(model, (state, final), frames.dt / substeps))
    lanes = state.t.ndim
    recorded = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), state, later)
    t, q, v = (jnp.moveaxis(x, 0, lanes) for x in (recorded.t, recorded.q, recorded.v))
    return final, code, (t, q, v)


def _fine(state: State) -> Array:
    return jnp.full(state.t.shape, OK, jnp.int32)


def _next(
    scheme: FreeScheme,
    model: Model,
    state: State,
    code: Array,
    frames: Frames,
    k: Array,
    controller: Controller,
    substeps: Array | int,
) -> tuple[State, Array]:
    """Return the state at the frame after the k-th, and the code of the run up to there."""
    dt = frames.interval(k)
    h = dt / substeps

    def substep(_: Array, now: tuple[State, Array]) -> tuple[State, Array]:
        state, code = now
        drive = controller(model, state, k + 1)
        after, closing = step_and_close(scheme.name, model, state, h, drive.motors, drive.impulses(h))
        if closing is None:
            return after, code
        apart = (closing.code != OK)[..., None]
        q, v = (jnp.where(apart, jnp.nan, x) for x in (after.q, after.v))
        return State(q, v, after.t), jnp.where(code == OK, closing.code, code)

    end, code = jax.lax.fori_loop(0, substeps, substep, (state, code))
    # the sum of many steps would add rounding errors
    return State(end.q, end.v, time_after(state.t, dt)), jnp.where(code == OK, finite_code(end.q, end.v), code)


@functools.partial(native, alike=True)
def _block(
    scheme: FreeScheme,
    given: Packed | Model,
    state: State,
    rows: Drive,
    log: OpenRecord,
    frames: Frames,
    substeps: Array,
) -> tuple[State, Array, OpenRecord]:
    """Run the lanes of a block (W,) for any number of frames and steps.

    rows: the drive from frame to frame, in `Open`.  log: (F, W, nq + nv + 1).
    """
    model: Model = unpack_model(given)
    controller = controller_of(jax.tree.map(lambda x: x.array, rows, is_leaf=lambda x: isinstance(x, Open)), Drive())

    def write(log: Array, k: Array, state: State) -> Array:
        row = jnp.concatenate([state.q, state.v, state.t[:, None]], -1)
        return jax.lax.dynamic_update_slice(log, row[None], (k, jnp.int32(0), jnp.int32(0)))

    def iteration(carry: tuple[Array, State, Array, Array]) -> tuple[Array, State, Array, Array]:
        k, state, code, log = carry
        state, code = _next(scheme, model, state, code, frames, k, controller, substeps)
        return k + 1, state, code, write(log, k + 1, state)

    start = jnp.int32(0), state, _fine(state), write(log.array, jnp.int32(0), state)
    _, final, code, written = jax.lax.while_loop(lambda carry: carry[0] < frames.count, iteration, start)
    code = gravest(code, scheme.check(model, (state, final), frames.dt / substeps))
    return final, code, OpenRecord(written)


def fly(
    scheme: FreeScheme, model: Packed | Model, state: State, frames: Frames, count: int, rows: Drive, substeps: int
) -> FreeRun:
    """Compute `run_free` as machine code, with lanes in blocks that fill a vector.

    One scene is a block of equal ones, so that its result is the same alone and in a batch.
    model: packed only if all lanes share it.
    """
    lanes = state.t.shape
    wide = side_by_side(state.q.dtype)
    blocks = -(-math.prod(lanes) // wide)

    def cut(x: Array, axis: int) -> Array:
        """Return x (..., lanes, ...) as (blocks, ..., W, ...)."""
        x = x if lanes else jnp.expand_dims(x, axis)
        rest = jax.lax.slice_in_dim(x, x.shape[axis] - 1, None, axis=axis)
        shape = list(x.shape)
        shape[axis] = blocks * wide - x.shape[axis]
        x = jnp.concatenate([x, jnp.broadcast_to(rest, shape)], axis)
        return jnp.moveaxis(x.reshape(*x.shape[:axis], blocks, wide, *x.shape[axis + 1 :]), axis, 0)

    parameters = {} if isinstance(model, Packed) else model.parameters
    own = {name: cut(x, 0) for name, x in parameters.items() if x.ndim > Model.base_ndim(name)}
    states = jax.tree.map(lambda x: cut(x, 0), state)
    shared = jax.tree.map(lambda x: x if x.ndim < 3 else None, rows)
    varied = jax.tree.map(lambda x: cut(x, 1) if x.ndim == 3 else None, rows)
    width = state.q.shape[-1] + state.v.shape[-1] + 1
    log = jnp.zeros((blocks, count + 1, wide, width), state.q.dtype)

    def one(own: dict[str, Array], state: State, varied: Drive, log: Array) -> tuple[State, Array, Array]:
        inputs = Drive(*(Open(a if b is None else b) if (a is not None or b is not None) else None
                       for a, b in zip(shared, varied, strict=True)))  # fmt: skip
        block = model if isinstance(model, Packed) else replace(model, **own)
        final, code, kept = _block(scheme, block, state, inputs, OpenRecord(log), frames, jnp.int32(substeps))
        return final, code, kept.array

    final, code, log = jax.vmap(one)(own, states, varied, log)

    def concatenate(x: Array) -> Array:
        x = x.reshape(blocks * wide, *x.shape[2:])[: math.prod(lanes)]
        return x.reshape(*lanes, *x.shape[1:])

    log = concatenate(jnp.moveaxis(log, 2, 1))  # (*lanes, F, width)
    q, v, t = jnp.split(log, (state.q.shape[-1], width - 1), -1)
    return jax.tree.map(concatenate, final), concatenate(code), (t[..., 0], q, v)


@functools.partial(native, blocks=True)
def _lane(
    static: tuple[FreeScheme, int, int], model: Model, state: State, frames: Frames, rows: Drive, log: Array
) -> tuple[State, Array, Array]:
    """Run a scene that is one of many under `vmap`, in blocks of lanes, the first axis of every array.

    log: (W, F, nq + nv + 1).
    """
    scheme, count, substeps = static
    controller = controller_of(jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), rows), Drive())

    def write(log: Array, k: Array, state: State) -> Array:
        row = jnp.concatenate([state.q, state.v, state.t[:, None]], -1)
        return jax.lax.dynamic_update_slice(log, row[:, None], (jnp.int32(0), k, jnp.int32(0)))

    def iteration(k: Array, carry: tuple[State, Array, Array]) -> tuple[State, Array, Array]:
        state, code, log = carry
        state, code = _next(scheme, model, state, code, frames, k, controller, substeps)
        return state, code, write(log, k + 1, state)

    start = state, _fine(state), write(log, jnp.int32(0), state)
    final, code, log = jax.lax.fori_loop(jnp.int32(0), jnp.int32(count), iteration, start)
    return final, gravest(code, scheme.check(model, (state, final), frames.dt / substeps)), log


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def run_free_native(
    static: tuple[FreeScheme, int, int, bool], model: Packed | Model, state: State, frames: Frames, rows: Drive
) -> FreeRun:
    """Compute `run_free` as machine code, or by `run_free` itself if it is differentiated.

    static: scheme, frames after the first, steps between two frames, and whether no program contains this one.
    """
    scheme, count, substeps, alone = static
    if alone or state.t.ndim:
        return fly(scheme, model, state, frames, count, rows, substeps)
    nq, width = state.q.shape[-1], state.q.shape[-1] + state.v.shape[-1] + 1
    log = jnp.zeros((count + 1, width), state.q.dtype)
    final, code, log = _lane((scheme, count, substeps), unpack_model(model), state, frames, rows, log)
    q, v, t = jnp.split(log, (nq, width - 1), -1)
    return final, code, (t[..., 0], q, v)


@run_free_native.defjvp
def _(
    static: tuple[FreeScheme, int, int, bool],
    primals: tuple[Packed | Model, State, Frames, Drive],
    tangents: tuple[Packed | Model, State, Frames, Drive],
) -> tuple[FreeRun, FreeRun]:
    scheme, count, substeps, _ = static

    def run(model: Packed | Model, state: State, frames: Frames, rows: Drive) -> FreeRun:
        return run_free(scheme, unpack_model(model), state, frames, count, controller_of(rows, Drive()), substeps)

    return jax.jvp(run, primals, tangents)
