"""What a tick solves for, and where that takes the chain.

- Something has just run into what stops it: the stop, and what it does to all velocities (Z1 to Z3, section 7.1).
- Nothing is known of the state's accelerations: these.
- Else a step: to the frame, to the next event or as long as it may be, whichever is first, and the accelerations at
  its end.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec2 import Vec2
from ...engine.planar.accelerations import Demand, Posture, pull, solve, stop
from ...engine.planar.chain import Motion
from ...engine.planar.links import DriveRows, Links, Rows, links
from .crossing import Crossings, crossings, later
from .lane import Holds, Lane, select


class Bounds(NamedTuple):
    """Numbers of a run. max_dt: the longest step [s].  settle: time constant of (33) [s].  tolerance: of the change of
    velocity that a change of acceleration within a step may make [m/s]."""

    max_dt: Array
    settle: Array
    tolerance: Array


class Proposal(NamedTuple):
    """stopping, stepping: (*batch) what the solve is for; neither for accelerations.  h: (*batch) the step, else 0.
    catching: holds that catch at its end.  meets: see `Crossings`.  tried, link: the state there.
    asked, moved, reaction: what was asked of it, and the answer."""

    stopping: Array
    stepping: Array
    h: Array
    catching: Holds
    meets: Crossings
    tried: Posture
    link: Links
    asked: Demand
    moved: Motion
    reaction: Vec2


def proposal(rows: Rows, lane: Lane, drive: DriveRows, bounds: Bounds, turning: bool) -> Proposal:
    now = lane.now
    stopping = lane.striking.any()
    stepping = lane.known & ~stopping & ~lane.done
    # how far
    left, rounding = lane.clock.left, 16 * jnp.finfo(lane.h.dtype).eps
    wanted = jnp.where(lane.h >= left * (1 - rounding), left, lane.h)
    meets = crossings(rows, now, lane.a, links(rows, now.x, now.v), wanted, turning)
    first = meets.at.least()
    eventful = stepping & (first <= wanted) & ~meets.lost
    h = jnp.where(stepping, jnp.where(eventful, first, wanted), 0)
    catching = meets.at.below(first * (1 + rounding)).only(eventful)
    # where to, and what happens there
    tried = later(now, lane.a, h)
    link = links(rows, tried.x, tried.v)
    asked = select(stopping, stop(rows, link, tried), pull(rows, link, tried, drive, bounds.settle))
    moved, reaction = solve(rows, link, tried, asked, turning)
    return Proposal(stopping, stepping, h, catching, meets, tried, link, asked, moved, reaction)
