"""The clock of a lane: frames are cut out of time by what is left to the next one, never by differences of times."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class Frames(NamedTuple):
    """When frames are recorded: `count` of them follow the first state, `dt` apart, the last one after `last`. All (),
    in seconds, numbers that a program is given: it is the same program whatever they are."""

    dt: Array
    last: Array
    count: Array

    @staticmethod
    def of(intervals: Sequence[float] | np.ndarray, dtype: Any) -> Frames:
        """From the times between frames, which are equal, but the last may be shorter."""
        dt, last = (number(float(intervals[k]), dtype) for k in (0, -1))
        return Frames(dt, last, number(len(intervals), np.int32))

    def interval(self, k: Array | int) -> Array:
        """From frame k to the next [s]."""
        return jnp.where(k >= self.count - 1, self.last, self.dt)


def number(x: Any, dtype: Any) -> Array:
    """x () of this type. Numbers of Python's are kept: to make an array of one takes longer than a short step."""
    return _known(x, dtype) if type(x) in (float, int) else jnp.asarray(x, dtype)


@functools.lru_cache(256)
def _known(x: float, dtype: Any) -> Array:
    with jax.ensure_compile_time_eval():
        return jnp.asarray(x, dtype)


class Clock(NamedTuple):
    """left: (*batch) time to the next frame [s].  due: (*batch) when that is [s].  frame: (*batch) its number; the
    state a run begins with is frame 0."""

    left: Array
    due: Array
    frame: Array


def started(t: Array, frames: Frames) -> Clock:
    """At the time t (*batch), before the first of the frames."""
    first = jnp.broadcast_to(frames.interval(0), t.shape).astype(t.dtype)
    return Clock(first, t + first, jnp.ones(t.shape, jnp.int32))


def later(clock: Clock, h: Array, frames: Frames) -> tuple[Clock, Array]:
    """After a step h (*batch): the clock, and the time. Behind the last frame nothing is left."""
    left = clock.left - h
    reached = left <= 0
    next_one = jnp.where(clock.frame < frames.count, frames.interval(clock.frame), 0).astype(left.dtype)
    t = jnp.where(reached, clock.due, clock.due - left)
    new = Clock(
        jnp.where(reached, next_one, left),
        jnp.where(reached, clock.due + next_one, clock.due),
        jnp.where(reached, clock.frame + 1, clock.frame),
    )
    return new, t
