"""What catches and what lets go: Wawrzynski (2005), sections 7 and 12.1, and the remedies of 12.2 for scraping and
rattling.

A joint that sticks in a ground lets go when the ground would have to pull it; an angle at a limit, when the limit
would have to pull. One at a time, the one that pulls hardest: what others then do may change.

Letting go and catching again may go on for ever: at one instant (scraping: no set of holds agrees with the forces) or
faster and faster (rattling). The remedy is the report's: what has let go too often in quick succession is kept. It is
counted from the last quiet step, one that ends in no event and is not short, or the last frame.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ...engine.planar.accelerations import Posture
from ...engine.planar.links import Rows
from ...engine.planar.model import OPEN
from .lane import Holds, Lane
from .proposal import Proposal

PATIENCE = 4  # times that a hold may let go in quick succession


class Letting(NamedTuple):
    """loose: the hold that lets go, if any.  kept: (*batch) how many are kept from now on.  let_go: see `Lane`."""

    loose: Holds
    kept: Array
    let_go: Holds


def pulling(rows: Rows, p: Proposal) -> Holds:
    """With what force each hold pulls, 0 where it pushes or there is none (n, *batch) [N, in a stop N s]."""
    stuck = jnp.zeros_like(rows.mass)
    for k in range(len(rows.ground.x)):
        stuck = jnp.where(p.tried.stuck == k, -p.reaction.dot(rows.normal[k]), stuck)
    # a limit above pushes downwards
    shut = p.tried.shut * p.moved.torque * jnp.sqrt(p.link.L.dot(p.link.L))
    forces = p.asked.F.dot(p.asked.F) + p.moved.F.dot(p.moved.F)
    least = jnp.finfo(stuck.dtype).eps ** (2 / 3) * jnp.sqrt(forces.max(0))
    pull = Holds(stuck, shut)
    return pull.only(pull.above(least))


def letting_go(rows: Rows, lane: Lane, p: Proposal) -> Letting:
    pull = pulling(rows, p)
    able = pull.only(lane.striking.below(0))  # what strikes has still to stop
    weary = Holds(lane.let_go.stuck >= PATIENCE, lane.let_go.shut >= PATIENCE)
    free = able.only(weary.below(0))
    most = free.most()
    loose = Holds(free.stuck >= most, free.shut >= most).only(most > 0)
    # a hold that is kept is counted once, by letting go as it were once more
    anew = able.above(0).only(Holds(lane.let_go.stuck == PATIENCE, lane.let_go.shut == PATIENCE))
    anew = anew.only(most <= 0)
    return Letting(loose, anew.number(), lane.let_go + ones(loose) + ones(anew))


def ones(flags: Holds) -> Holds:
    return Holds(flags.stuck.astype(jnp.int32), flags.shut.astype(jnp.int32))


def changed(now: Posture, loose: Holds, p: Proposal) -> Posture:
    """With what let go, and what caught."""
    stuck, shut = jnp.where(loose.stuck, -1, now.stuck), jnp.where(loose.shut, OPEN, now.shut)
    stuck = jnp.where(p.catching.stuck, p.meets.ground, stuck)
    return now._replace(stuck=stuck, shut=jnp.where(p.catching.shut, p.meets.side, shut))
