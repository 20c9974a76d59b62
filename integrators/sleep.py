"""Sleep: a lane that a tick leaves unchanged is not computed, frame after frame, until its drive changes.

The next tick follows from the state, the drive and the state of time control. If a tick leaves all three unchanged to
the last bit, so will the next: the following frames are known, and cost nothing. Derivatives are not part of the state
and may still change, so a lane that is differentiated does not sleep.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.loops.evaluation import has_target
from ..engine.model import Model
from ..engine.state import State
from ..engine.topology import Topology
from .clock import Clock, Frames, advance_clock
from .lanes import Lane
from .motion.forces import Drive
from .prepare import Controller
from .recording import Record


def may_sleep(topology: Topology, functions: Drive) -> bool:
    """Return whether no force can be a function of time.  functions: the functions of the drive."""
    return functions == Drive() and not any(has_target(loop.kind) for loop in topology.loops)


def follows_time(model: Model) -> bool:
    """Return whether the target of a loop changes with time, for a model with concrete values."""
    functions = any(loop.course is not None for loop in model.topology.loops)
    _, rate, size, *_ = np.moveaxis(np.asarray(model.loop_course), -1, 0)
    return functions or bool(rate.any() or size.any())


@jax.custom_jvp
def is_unchanged(before: Lane, after: Lane) -> Array:
    """Return whether a tick changed nothing, (*batch)."""

    def numbers(lane: Lane) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        state, drive = lane.ready.state, lane.ready.drive
        return (state.q, state.v, drive), (lane.search, lane.ready.longest, lane.ready.touch)

    wide, rest = jax.tree.map(lambda x, y: x == y, numbers(before), numbers(after))
    each = [x.all(-1) for x in jax.tree.leaves(wide)]
    each += [x.reshape(-1, *before.fresh.shape).all(0) for x in jax.tree.leaves(rest)]
    return jnp.stack([*each, ~before.fresh]).all(0)


@is_unchanged.defjvp
def _never(primals: tuple[Lane, Lane], tangents: tuple[Any, Any]) -> tuple[Array, Any]:
    fresh = primals[0].fresh
    return jnp.zeros_like(fresh), np.zeros(fresh.shape, jax.dtypes.float0)


def skip_sleeping_frames(
    model: Model, lane: Lane, record: Record, frames: Frames, controller: Controller, max_dt: Array
) -> tuple[Lane, Record]:
    """Return lanes and their record after all frames during which they sleep."""
    apart = lane.clocks.apart(max_dt)
    state, drive = lane.ready.state, lane.ready.drive

    def some(carry: tuple[Clock, Array, Array, Record]) -> Array:
        return carry[2].any()

    def frame(carry: tuple[Clock, Array, Array, Record]) -> tuple[Clock, Array, Array, Record]:
        clock, t, asleep, record = carry
        after, reached = advance_clock(clock, t, clock.left, frames, apart)
        new = controller(model, State(state.q, state.v, reached), after.frame)
        same = jax.tree.map(lambda x, y: (x == y).all(-1), drive, new)
        asleep = jnp.stack([asleep, *jax.tree.leaves(same)]).all(0)
        clock, t = jax.tree.map(lambda x, y: jnp.where(asleep, x, y), (after, reached), (clock, t))
        record = record.with_frame(clock.frame - asleep, State(state.q, state.v, t))
        return clock, t, asleep & (clock.frame <= frames.count), record

    start = lane.clock, state.t, lane.asleep & ~lane.done, record
    clock, t, _, record = jax.lax.while_loop(some, frame, start)
    ready = lane.ready._replace(state=State(state.q, state.v, t))
    return lane._replace(ready=ready, clock=clock, done=lane.done | (clock.frame > frames.count)), record
