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
        dt, last = (as_array(float(intervals[k]), dtype) for k in (0, -1))
        return Frames(dt, last, as_array(len(intervals), np.int32))

    def interval(self, k: Array | int) -> Array:
        """From frame k to the next [s]."""
        return jnp.where(k >= self.count - 1, self.last, self.dt)


def as_array(x: Any, dtype: Any) -> Array:
    """x () of this type. Numbers of Python's are kept: to make an array of one takes longer than a short step."""
    return _constant(x, dtype) if type(x) in (float, int) else jnp.asarray(x, dtype)


@functools.lru_cache(256)
def _constant(x: float, dtype: Any) -> Array:
    with jax.ensure_compile_time_eval():
        return jnp.asarray(x, dtype)


class Clock(NamedTuple):
    """left: (*batch) time to the next frame [s].  due: (*batch) when that is [s].  frame: (*batch) its number; the
    state a run begins with is frame 0.

    Of clocks that differ (`clocks.py`), left: (T,) time of each to where they meet next.  rest: () from there to the
    next frame [s]; None of a lane with one clock, which meets nobody.
    """

    left: Array
    due: Array
    frame: Array
    rest: Any = None


def start_clock(t: Array, frames: Frames) -> Clock:
    """At the time t (*batch), before the first of the frames."""
    first = jnp.broadcast_to(frames.interval(0), t.shape).astype(t.dtype)
    return Clock(first, t + first, jnp.ones(t.shape, jnp.int32))


def start_island_clocks(clock: Clock, trees: int, apart: Array) -> Clock:
    """A clock for each tree in place of one, which meet after `apart` () [s] at most."""
    piece = _piece(clock.left, apart)
    return clock._replace(left=jnp.full(trees, piece), rest=clock.left - piece)


def advance_clock(clock: Clock, h: Array, frames: Frames, apart: Array | None = None) -> tuple[Clock, Array]:
    """After a step h (*batch), or (T,): the clock, and the time, which of clocks that differ is that of the last.
    Behind the last frame nothing is left.  apart: () how long, at most, until such clocks meet again [s]."""
    left, rest = clock.left - h, clock.rest
    if apart is None:
        reached = left <= 0
        t = jnp.where(reached, clock.due, clock.due - left)
        next_one, due, frame = _next(clock, reached, frames)
        return Clock(jnp.where(reached, next_one, left), due, frame), t
    to_go = rest + left.max(0)
    met, reached = left.max(0) <= 0, to_go <= 0
    t = jnp.where(reached, clock.due, clock.due - to_go)
    next_one, due, frame = _next(clock, reached, frames)
    whole = jnp.where(reached, next_one, rest)
    piece = _piece(whole, apart)
    return Clock(jnp.where(met, piece, left), due, frame, jnp.where(met, whole - piece, rest)), t


def _next(clock: Clock, reached: Array, frames: Frames) -> tuple[Array, Array, Array]:
    """From the next frame to the one after it [s]; when the next one is due then, and its number."""
    next_one = jnp.where(clock.frame < frames.count, frames.interval(clock.frame), 0).astype(clock.left.dtype)
    due, frame = clock.due + next_one, clock.frame + 1
    return next_one, jnp.where(reached, due, clock.due), jnp.where(reached, frame, clock.frame)


def clock_times(clock: Clock, h: Array) -> Array:
    """When each of clocks that differ (T,) is after a step h (T,) [s]."""
    return clock.due - ((clock.left - h) + clock.rest)


def _piece(whole: Array, apart: Array) -> Array:
    """The first of as many equal pieces as it takes."""
    rounding = 1 - 16 * jnp.finfo(whole.dtype).eps
    return whole / jnp.maximum(jnp.ceil(whole * rounding / apart), 1)
