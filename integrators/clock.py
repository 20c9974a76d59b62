"""The clock of a lane. It counts down the time to the next frame, which avoids differences of large times."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient
from jax.typing import DTypeLike

ON_GRID = 4  # units of rounding of a time: as far as it may be from a multiple of the interval


class Frames(NamedTuple):
    """Times of a run's frames. All are arguments of the compiled program, so one program serves all values.

    dt: () time between frames [s].
    last: () time between the last two frames [s].
    count: () number of frames after the first state.
    """

    dt: Array
    last: Array
    count: Array

    @staticmethod
    def of(intervals: Sequence[float] | np.ndarray, dtype: DTypeLike) -> Frames:
        """Return frames with the given intervals, which are equal except that the last may be shorter."""
        dt, last = (as_array(float(intervals[k]), dtype) for k in (0, -1))
        return Frames(dt, last, as_array(len(intervals), np.int32))

    def interval(self, k: Array | int) -> Array:
        """Return the time from frame k to the next [s]."""
        return jnp.where(k >= self.count - 1, self.last, self.dt)


def as_array(x: Any, dtype: DTypeLike) -> Array:
    """Return x () as an array of this type. Arrays of Python numbers are cached: one takes longer than a short step."""
    return _constant(x, dtype) if type(x) in (float, int) else jnp.asarray(x, dtype)


@functools.lru_cache(256)
def _constant(x: float, dtype: DTypeLike) -> Array:
    with jax.ensure_compile_time_eval():
        return jnp.asarray(x, dtype)


class Clock(NamedTuple):
    """Time to the next frame.

    left: (*batch) time to the next frame [s]. With a clock for each island (`clocks.py`): (T,) time of each clock to
        the next synchronization.
    due: (*batch) time of the next frame [s].
    frame: (*batch) number of the next frame; frame 0 is the first state of a run.
    rest: () time from the next synchronization to the next frame [s]; None for a single clock.
    """

    left: Array
    due: Array
    frame: Array
    rest: Any = None


def start_clock(t: Array, frames: Frames) -> Clock:
    """Return a clock at the time t (*batch), before the first frame."""
    first = jnp.broadcast_to(frames.interval(0), t.shape).astype(t.dtype)
    return Clock(first, time_after(t, first), jnp.ones(t.shape, jnp.int32))


def time_after(t: Array, interval: Array) -> Array:
    """Return t + interval, without drift: if t is a multiple of the interval but for rounding, so is the result.

    It depends on t alone, so that a run that goes on from a frame has the times of one that was not cut.
    """
    each = jnp.where(interval > 0, interval, 1)
    number = jnp.round(t / each)
    on_grid = (interval > 0) & (jnp.abs(t - number * each) <= ON_GRID * jnp.finfo(t.dtype).eps * jnp.abs(t))
    total = t + interval
    return total + stop_gradient(jnp.where(on_grid, (number + 1) * each - total, 0))


def start_island_clocks(clock: Clock, trees: int, apart: Array) -> Clock:
    """Return a clock for each tree instead of one clock; they synchronize after at most `apart` () [s]."""
    piece = _piece(clock.left, apart)
    return clock._replace(left=jnp.full(trees, piece), rest=clock.left - piece)


def advance_clock(clock: Clock, t: Array, h: Array, frames: Frames, apart: Array | None = None) -> tuple[Clock, Array]:
    """Return the clock and the time after a step h (*batch), or (T,) with several clocks, from the time t [s].

    With several clocks, the time is that of the one farthest behind. After the last frame, the time left is 0.
    apart: () longest time between synchronizations [s]; None: there is one clock.
    """
    left, rest = clock.left - h, clock.rest
    if apart is None:
        reached = left <= 0
        t = _time(clock, t, clock.left, left)
        next_one, due, frame = _next(clock, reached, frames)
        return Clock(jnp.where(reached, next_one, left), due, frame), t
    to_go = rest + left.max(0)
    met, reached = left.max(0) <= 0, to_go <= 0
    t = _time(clock, t, rest + clock.left.max(0), to_go)
    next_one, due, frame = _next(clock, reached, frames)
    whole = jnp.where(reached, next_one, rest)
    piece = _piece(whole, apart)
    return Clock(jnp.where(met, piece, left), due, frame, jnp.where(met, whole - piece, rest)), t


def _time(clock: Clock, t: Array, before: Array, left: Array) -> Array:
    """Return the time [s] when `left` is left to the next frame, which was `before` at the time t.

    A step of length 0 leaves t as it was, to the bit: a run starts with one, and may start at a frame of another.
    """
    to_frame = jnp.where(left <= 0, clock.due, clock.due - left)
    return jnp.where(left == before, t + (before - left), to_frame)


def _next(clock: Clock, reached: Array, frames: Frames) -> tuple[Array, Array, Array]:
    """Return the interval after the next frame [s], and the time and number of the next frame after it is reached."""
    next_one = jnp.where(clock.frame < frames.count, frames.interval(clock.frame), 0).astype(clock.left.dtype)
    due, frame = time_after(clock.due, next_one), clock.frame + 1
    return next_one, jnp.where(reached, due, clock.due), jnp.where(reached, frame, clock.frame)


def clock_times(clock: Clock, h: Array) -> Array:
    """Return the time of each clock (T,) after a step h (T,) [s]."""
    return clock.due - ((clock.left - h) + clock.rest)


def _piece(whole: Array, apart: Array) -> Array:
    """Return the length of equal pieces of `whole`, none longer than `apart` [s]."""
    rounding = 1 - 16 * jnp.finfo(whole.dtype).eps
    return whole / jnp.maximum(jnp.ceil(whole * rounding / apart), 1)
