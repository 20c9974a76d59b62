"""One tick of a planar chain: one solve of its recursion.

A step whose accelerations change too much is not taken: the lane keeps its state and tries half the step (section 12.2,
"going back"). If a hold would have to pull, it is released, and the next tick solves again.

Difference: the velocity of a step changes with the mean of the accelerations at both its ends. They are known, and the
order is two instead of one; the report takes those at its start (`scheme="constant"`).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec2 import Vec2
from ...engine.planar.accelerations import Posture, joint_rates
from ...engine.planar.links import DriveRows, Rows
from ...engine.results import CHAIN_HELD, CHAIN_ROUGH, NOT_FINITE, OK, gravest
from ..clock import Frames, advance_clock
from .chain_step import ChainBounds, ChainProposal, propose_chain_step
from .holding import Releases, find_releases, release_holds
from .lane import ChainLane, ChainStats, Holds, select

SHORTEST = 2.0**-20  # shortest step, as a part of the longest
QUIET = 0.25  # shortest quiet step, as a part of the longest


class ChainRules(NamedTuple):
    """Static choices.  scheme: "average" | "constant".  turning: whether angles may be held."""

    scheme: str
    turning: bool


class ChainVerdict(NamedTuple):
    """The decision about a step, (*batch).

    accepted: whether the step is accepted.
    stopped: whether a stop was made.
    back: whether half the step is tried next.
    rough: whether a step was too long for its accelerations.
    jump: the change of velocity that their change would have made [m/s].
    finite: whether all numbers are finite.
    """

    accepted: Array
    stopped: Array
    back: Array
    rough: Array
    jump: Array
    finite: Array


class ChainImpact(NamedTuple):
    """A stop that changed velocities.

    yes: (*batch) whether there was one.
    which: the holds that caught.
    before, after: velocities [m/s].
    p: the step, see `ChainProposal`.
    """

    yes: Array
    which: Holds
    before: Vec2
    after: Vec2
    p: ChainProposal


def tick(
    rules: ChainRules, rows: Rows, lane: ChainLane, drive: DriveRows, bounds: ChainBounds, frames: Frames
) -> tuple[ChainLane, ChainImpact]:
    """Return the lane a tick later, and the stop that was made."""
    p = propose_chain_step(rows, lane, drive, bounds, rules.turning)
    letting = find_releases(rows, lane, p)
    verdict = decide(lane, p, letting, bounds)
    after = advance_state(rules, lane, p, letting, verdict)
    new = advance_chain(lane, p, letting, verdict, after, bounds, frames)
    new = select(verdict.accepted, new, lane._replace(h=jnp.where(verdict.back, shorter(p.h, bounds), lane.h)))
    struck = ChainImpact(verdict.stopped & is_felt(lane, p), lane.striking, lane.now.v, after.v, p)
    new = update_stats(rows, lane, new, p, letting, verdict, struck)
    over = (new.clock.frame > frames.count) & ~new.striking.any()
    new = new._replace(done=lane.done | over | ~verdict.finite)
    return new, struck


def decide(lane: ChainLane, p: ChainProposal, letting: Releases, bounds: ChainBounds) -> ChainVerdict:
    """Decide whether accelerations stayed close enough to those that the step assumed."""
    change = p.response.a - lane.a
    jump = jnp.sqrt(change.dot(change).max(0)) * p.h
    rough = p.stepping & ((jump > bounds.tolerance) | p.meets.lost)
    back = rough & (p.h > bounds.max_dt * SHORTEST)
    finite = (jnp.isfinite(p.response.a.x) & jnp.isfinite(p.response.a.y)).all(0) | lane.done
    accepted = ~back & finite & ~lane.done
    stopped = accepted & p.stopping & ~letting.loose.any()
    return ChainVerdict(accepted, stopped, back, rough, jump, finite)


def advance_state(
    rules: ChainRules, lane: ChainLane, p: ChainProposal, letting: Releases, verdict: ChainVerdict
) -> Posture:
    """Return the state after the step or the stop."""
    v = p.tried.v
    if rules.scheme == "average":
        v = v + (p.response.a - lane.a) * (0.5 * p.h)
    v = select(verdict.stopped, v + p.response.a, v)
    return release_holds(p.tried._replace(v=v), letting.loose, p)


def advance_chain(
    lane: ChainLane,
    p: ChainProposal,
    letting: Releases,
    verdict: ChainVerdict,
    after: Posture,
    bounds: ChainBounds,
    frames: Frames,
) -> ChainLane:
    """Return the lane at the end of the step."""
    clock, t = select(p.stepping, advance_clock(lane.clock, lane.t, p.h, frames), (lane.clock, lane.t))
    framed = clock.frame > lane.clock.frame
    at_frame = framed | (lane.at_frame & p.stopping)
    eventful = p.catching.any()
    quiet = framed | (at_frame & verdict.stopped) | (~eventful & (p.h >= QUIET * bounds.max_dt))
    longer = jnp.where(verdict.jump < bounds.tolerance / 4, 2 * p.h, p.h)
    h = jnp.where(p.stepping & ~eventful, jnp.minimum(jnp.maximum(longer, lane.h), bounds.max_dt), lane.h)
    return lane._replace(
        now=after,
        a=p.response.a,
        known=~(p.stopping | letting.loose.any() | eventful | framed),
        h=jnp.where(framed, bounds.max_dt, h),
        striking=lane.striking.only(~verdict.stopped) | p.catching,
        let_go=letting.let_go.only(~quiet),
        since_quiet=jnp.where(quiet, 0, lane.since_quiet + p.h),
        clock=clock,
        t=t,
        at_frame=at_frame,
    )


def shorter(h: Array, bounds: ChainBounds) -> Array:
    return jnp.maximum(h / 2, bounds.max_dt * SHORTEST)


def is_felt(lane: ChainLane, p: ChainProposal) -> Array:
    """Return whether a hold that caught had moved, beyond rounding, (*batch). A resting joint may be caught again."""
    v, least = p.tried.v, jnp.finfo(p.h.dtype).eps
    square = v.dot(v)
    angular = (joint_rates(p.link) * p.link.l) ** 2
    struck = jnp.maximum(jnp.where(lane.striking.stuck, square, 0), jnp.where(lane.striking.shut, angular, 0))
    return struck.max(0) > least * square.max(0)


def update_stats(
    rows: Rows,
    lane: ChainLane,
    new: ChainLane,
    p: ChainProposal,
    letting: Releases,
    verdict: ChainVerdict,
    struck: ChainImpact,
) -> ChainLane:
    """Return the lane with the statistics and codes of the tick added."""
    busy, c = ~lane.done, lane.stats
    kept = jnp.where(verdict.accepted, letting.kept, 0)
    rough = verdict.rough & ~verdict.back
    stretch = jnp.where(rows.linked, jnp.abs(p.link.l / rows.length - 1), 0).max(0)
    stats = ChainStats(
        c.ticks + busy,
        c.halvings + verdict.back,
        c.impacts + struck.yes,
        c.releases + jnp.where(verdict.accepted, letting.loose.number(), 0),
        c.scrapes + jnp.where(lane.since_quiet > 0, 0, kept),
        c.rattles + jnp.where(lane.since_quiet > 0, kept, 0),
        c.rough + rough,
        jnp.where(verdict.accepted, jnp.maximum(stretch, c.stretch), c.stretch),
    )
    code = gravest(
        lane.code,
        jnp.where(verdict.finite, OK, NOT_FINITE),
        jnp.where(kept > 0, CHAIN_HELD, OK),
        jnp.where(rough, CHAIN_ROUGH, OK),
    )
    return new._replace(stats=stats, code=code)
