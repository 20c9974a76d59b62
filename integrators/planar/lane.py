"""Lanes of planar chains: the data that a tick passes to the next, for one chain or many; leaves (n, *batch)."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec2 import Vec2
from ...engine.planar.accelerations import Posture, posture_of
from ...engine.planar.links import Rows
from ...engine.planar.model import ChainState
from ..clock import Clock, Frames, start_clock

T = TypeVar("T")


class Holds(NamedTuple):
    """A flag or number for each hold of each joint, (n, *batch).

    stuck: of the ground that the joint may stick in.
    shut: of the limits of its angle.
    """

    stuck: Array
    shut: Array

    def __add__(self, o: Holds) -> Holds:  # type: ignore[override]
        return jax.tree.map(lambda a, b: a + b, self, o)

    def __or__(self, o: Holds) -> Holds:
        return jax.tree.map(lambda a, b: a | b, self, o)

    def only(self, yes: Array | Holds) -> Holds:
        """Return these values where yes, else 0.  yes: (*batch), or one flag for each hold."""
        yes = yes if isinstance(yes, Holds) else Holds(yes, yes)
        return jax.tree.map(lambda a, y: jnp.where(y, a, jnp.zeros_like(a)), self, yes)

    def above(self, x: Array | float) -> Holds:
        return jax.tree.map(lambda a: a > x, self)

    def below(self, x: Array | float) -> Holds:
        """Return the opposite of `above`."""
        return jax.tree.map(lambda a: a <= x, self)

    def any(self) -> Array:
        """Return whether any hold's flag is set, (*batch)."""
        return self.stuck.any(0) | self.shut.any(0)

    def least(self) -> Array:
        """Return the least number of all holds, (*batch)."""
        return jnp.minimum(self.stuck.min(0), self.shut.min(0))

    def most(self) -> Array:
        """Return the largest number of all holds, (*batch)."""
        return jnp.maximum(self.stuck.max(0), self.shut.max(0))

    def number(self) -> Array:
        """Return the number (*batch) of flags that are set."""
        return self.stuck.sum(0, dtype=jnp.int32) + self.shut.sum(0, dtype=jnp.int32)


class ChainStats(NamedTuple):
    """Statistics of a run, (*batch).

    ticks: solves of the recursion.
    halvings: steps that were repeated with half the length.
    impacts: stops.
    releases: joints and angles that were released.
    scrapes: holds that were kept because they would be released again and again at one instant.
    rattles: holds that were kept because they would be released faster and faster.
    rough: shortest steps that were still too long.
    stretch: largest relative error of a link's length.
    """

    ticks: Array
    halvings: Array
    impacts: Array
    releases: Array
    scrapes: Array
    rattles: Array
    rough: Array
    stretch: Array


class ChainLane(NamedTuple):
    """The state of a run of chains between two ticks.

    now: the accepted state.
    a: its accelerations, if known [m/s^2].
    known: (*batch) whether `a` is known.
    h: (*batch) the longest step to try [s].
    striking: holds that caught at this instant and are not stopped yet.
    let_go: number of releases of each hold since the last quiet step or frame.
    since_quiet: (*batch) time since then [s].
    clock: time to the next frame.
    t: (*batch) time [s].
    at_frame: (*batch) whether a frame was reached, with only stops after it.
    stats: statistics.
    code: (*batch) result code.
    done: (*batch) whether the run has ended.
    """

    now: Posture
    a: Vec2
    known: Array
    h: Array
    striking: Holds
    let_go: Holds
    since_quiet: Array
    clock: Clock
    t: Array
    at_frame: Array
    stats: ChainStats
    code: Array
    done: Array


def first_lane(rows: Rows, state: ChainState, frames: Frames, max_dt: Array) -> ChainLane:
    now = posture_of(rows, state)
    none, zero = jnp.zeros(state.t.shape, jnp.int32), jnp.zeros_like(state.t)
    nothing, nowhere = jnp.zeros_like(rows.mass), jnp.zeros(rows.mass.shape, jnp.int32)
    return ChainLane(
        now,
        Vec2(nothing, nothing),
        none > 0,
        zero + max_dt,
        Holds(nowhere > 0, nowhere > 0),
        Holds(nowhere, nowhere),
        zero,
        start_clock(state.t, frames),
        state.t,
        none > 0,
        ChainStats(none, none, none, none, none, none, none, zero),
        none,
        none > 0,
    )


def select(yes: Array, new: T, old: T) -> T:
    """Return `new` in lanes where yes (*batch), else `old`: lanes are last."""
    return jax.tree.map(lambda x, y: jnp.where(yes, x, y), new, old)
