"""The clock of a lane: frames are cut out of time by what is left to the next one, never by differences of times."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


class Clock(NamedTuple):
    """left: (*batch) time to the next frame [s].  due: (*batch) when that is [s].  frame: (*batch) its number; the
    state a run begins with is frame 0."""

    left: Array
    due: Array
    frame: Array


def started(t: Array, intervals: Array) -> Clock:
    """At the time t (*batch), before the first of the frames that follow each other by intervals (frames,) [s]."""
    first = jnp.broadcast_to(intervals[0], t.shape).astype(t.dtype)
    return Clock(first, t + first, jnp.ones(t.shape, jnp.int32))


def later(clock: Clock, h: Array, intervals: Array) -> tuple[Clock, Array]:
    """After a step h (*batch): the clock, and the time. Behind the last frame nothing is left."""
    left = clock.left - h
    reached = left <= 0
    row = jnp.minimum(clock.frame, len(intervals) - 1)
    more = clock.frame < len(intervals)
    next_one = jnp.where(more, intervals[row], 0).astype(left.dtype)
    t = jnp.where(reached, clock.due, clock.due - left)
    new = Clock(
        jnp.where(reached, next_one, left),
        jnp.where(reached, clock.due + next_one, clock.due),
        jnp.where(reached, clock.frame + 1, clock.frame),
    )
    return new, t
