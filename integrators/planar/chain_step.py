"""One step of a planar chain: the unknowns of a tick, and the state that it leads to.

- If a hold has just caught: the stop, and the change of all velocities (Z1 to Z3, section 7.1).
- If the accelerations of the state are unknown: the accelerations.
- Otherwise a step, to the next frame, to the next event or of the longest length, whichever is first, and the
  accelerations at its end.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec2 import Vec2
from ...engine.planar.accelerations import Demand, Posture, pull, solve, stop
from ...engine.planar.chain import ChainSolution
from ...engine.planar.links import DriveRows, Links, Rows, links
from .crossing import Crossings, crossings, state_after
from .lane import ChainLane, Holds, select


class ChainBounds(NamedTuple):
    """Numbers of a run.

    max_dt: the longest step [s].
    settle: time constant of (33) [s].
    tolerance: largest error of velocity by a change of acceleration within a step [m/s].
    """

    max_dt: Array
    settle: Array
    tolerance: Array


class ChainProposal(NamedTuple):
    """A step of a chain.

    stopping: (*batch) whether the solve is for a stop.
    stepping: (*batch) whether it is for a step; if neither, for accelerations.
    h: (*batch) length of the step; 0 if there is none [s].
    catching: holds that catch at its end.
    meets: see `Crossings`.
    tried, link: the state at its end.
    demand: right side of the solve.
    response: its solution.
    reaction: forces of grounds, in a stop impulses [N, N s].
    """

    stopping: Array
    stepping: Array
    h: Array
    catching: Holds
    meets: Crossings
    tried: Posture
    link: Links
    demand: Demand
    response: ChainSolution
    reaction: Vec2


def propose_chain_step(
    rows: Rows, lane: ChainLane, drive: DriveRows, bounds: ChainBounds, turning: bool
) -> ChainProposal:
    now = lane.now
    stopping = lane.striking.any()
    stepping = lane.known & ~stopping & ~lane.done
    # length of the step
    left, rounding = lane.clock.left, 16 * jnp.finfo(lane.h.dtype).eps
    wanted = jnp.where(lane.h >= left * (1 - rounding), left, lane.h)
    meets = crossings(rows, now, lane.a, links(rows, now.x, now.v), wanted, turning)
    first = meets.at.least()
    eventful = stepping & (first <= wanted) & ~meets.lost
    h = jnp.where(stepping, jnp.where(eventful, first, wanted), 0)
    catching = meets.at.below(first * (1 + rounding)).only(eventful)
    # state and events at its end
    tried = state_after(now, lane.a, h)
    link = links(rows, tried.x, tried.v)
    demand = select(stopping, stop(rows, link, tried), pull(rows, link, tried, drive, bounds.settle))
    response, reaction = solve(rows, link, tried, demand, turning)
    return ChainProposal(stopping, stepping, h, catching, meets, tried, link, demand, response, reaction)
