"""What a tick of a planar chain carries to the next, of one chain or of many side by side; leaves (n, *batch)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec2 import Vec2
from ...engine.planar.accelerations import Posture, posture_of
from ...engine.planar.links import Rows
from ...engine.planar.model import ChainState
from ..clock import Clock, Frames, start_clock


class Holds(NamedTuple):
    """A flag or number (n, *batch) for the ground that each joint may stick in, and for the limits of its angle."""

    stuck: Array
    shut: Array

    def __add__(self, o: Holds) -> Holds:  # type: ignore[override]
        return jax.tree.map(lambda a, b: a + b, self, o)

    def __or__(self, o: Holds) -> Holds:
        return jax.tree.map(lambda a, b: a | b, self, o)

    def only(self, yes: Any) -> Holds:
        """Zero where not yes: (*batch), or one flag for each."""
        yes = yes if isinstance(yes, Holds) else Holds(yes, yes)
        return jax.tree.map(lambda a, y: jnp.where(y, a, jnp.zeros_like(a)), self, yes)

    def above(self, x: Any) -> Holds:
        return jax.tree.map(lambda a: a > x, self)

    def below(self, x: Any) -> Holds:
        """Not above."""
        return jax.tree.map(lambda a: a <= x, self)

    def any(self) -> Array:
        """(*batch)"""
        return self.stuck.any(0) | self.shut.any(0)

    def least(self) -> Array:
        """(*batch)"""
        return jnp.minimum(self.stuck.min(0), self.shut.min(0))

    def most(self) -> Array:
        """(*batch)"""
        return jnp.maximum(self.stuck.max(0), self.shut.max(0))

    def number(self) -> Array:
        """(*batch) of flags."""
        return self.stuck.sum(0, dtype=jnp.int32) + self.shut.sum(0, dtype=jnp.int32)


class ChainStats(NamedTuple):
    """Of every lane (*batch): what a run took.

    ticks: solves of the recursion.  halvings: steps tried again half as long.  impacts: stops.  releases: joints and
    angles that let go.  scrapes, rattles: of what would let go without end, how often something was kept instead, at
    one instant or faster and faster.  rough: shortest steps that were still too long.  stretch: the largest error of a
    link's length, as a part of it.
    """

    ticks: Array
    halvings: Array
    impacts: Array
    releases: Array
    scrapes: Array
    rattles: Array
    rough: Array
    stretch: Array


class Lane(NamedTuple):
    """now: the accepted state.  a: its accelerations, if `known`.  h: the longest step to try [s].
    striking: holds that caught at this instant, the stop still to come.  let_go: how often each hold has let go since
    the last quiet step, or frame.  moved: time since then [s].  at_frame: whether a frame was reached, and nothing
    but stops has come since.  code: the first that is not OK.  done: whether nothing is left."""

    now: Posture
    a: Vec2
    known: Array
    h: Array
    striking: Holds
    let_go: Holds
    moved: Array
    clock: Clock
    t: Array
    at_frame: Array
    stats: ChainStats
    code: Array
    done: Array


def first_lane(rows: Rows, state: ChainState, frames: Frames, max_dt: Array) -> Lane:
    now = posture_of(rows, state)
    none, zero = jnp.zeros(state.t.shape, jnp.int32), jnp.zeros_like(state.t)
    nothing, nowhere = jnp.zeros_like(rows.mass), jnp.zeros(rows.mass.shape, jnp.int32)
    return Lane(
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


def select(yes: Array, new: Any, old: Any) -> Any:
    """`new` in lanes where yes (*batch), else `old`: lanes are last."""
    return jax.tree.map(lambda x, y: jnp.where(yes, x, y), new, old)
