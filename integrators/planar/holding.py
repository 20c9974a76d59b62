"""Release of the holds of a chain: Wawrzynski (2005), sections 7 and 12.1, with the remedies of 12.2 for scraping
and rattling.

A joint that sticks in a ground is released when the ground would have to pull it, an angle at a limit when the limit
would have to pull. Only the hold that pulls hardest is released, since the forces of the others may change then.

Release and catch may repeat forever: at one instant (scraping: no set of holds agrees with the forces) or faster and
faster (rattling). The remedy is the report's: a hold that was released too often in quick succession is kept. Releases
count from the last frame or the last quiet step, one that ends without an event and is not short.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ...engine.planar.accelerations import Posture
from ...engine.planar.links import Rows
from ...engine.planar.model import OPEN
from .chain_step import ChainProposal
from .lane import ChainLane, Holds

PATIENCE = 4  # releases of a hold in quick succession


class Releases(NamedTuple):
    """The release of a tick.

    loose: the hold that is released, if any.
    kept: (*batch) number of holds that are kept from now on.
    let_go: see `ChainLane`.
    """

    loose: Holds
    kept: Array
    let_go: Holds


def pull_forces(rows: Rows, p: ChainProposal) -> Holds:
    """Return the force with which each hold pulls, 0 if it pushes or is open (n, *batch) [N, in a stop N s]."""
    stuck = jnp.zeros_like(rows.mass)
    for k in range(len(rows.ground.x)):
        stuck = jnp.where(p.tried.stuck == k, -p.reaction.dot(rows.normal[k]), stuck)
    # a limit above pushes downwards
    shut = p.tried.shut * p.response.torque * jnp.sqrt(p.link.L.dot(p.link.L))
    forces = p.demand.F.dot(p.demand.F) + p.response.F.dot(p.response.F)
    least = jnp.finfo(stuck.dtype).eps ** (2 / 3) * jnp.sqrt(forces.max(0))
    pull = Holds(stuck, shut)
    return pull.only(pull.above(least))


def find_releases(rows: Rows, lane: ChainLane, p: ChainProposal) -> Releases:
    pull = pull_forces(rows, p)
    able = pull.only(lane.striking.below(0))  # a hold that has just caught must stop first
    weary = Holds(lane.let_go.stuck >= PATIENCE, lane.let_go.shut >= PATIENCE)
    free = able.only(weary.below(0))
    most = free.most()
    loose = Holds(free.stuck >= most, free.shut >= most).only(most > 0)
    # a hold that is kept is counted only once: its number of releases is increased once more
    anew = able.above(0).only(Holds(lane.let_go.stuck == PATIENCE, lane.let_go.shut == PATIENCE))
    anew = anew.only(most <= 0)
    return Releases(loose, anew.number(), lane.let_go + ones(loose) + ones(anew))


def ones(flags: Holds) -> Holds:
    return Holds(flags.stuck.astype(jnp.int32), flags.shut.astype(jnp.int32))


def release_holds(now: Posture, loose: Holds, p: ChainProposal) -> Posture:
    """Return the state with a hold released and others caught."""
    stuck, shut = jnp.where(loose.stuck, -1, now.stuck), jnp.where(loose.shut, OPEN, now.shut)
    stuck = jnp.where(p.catching.stuck, p.meets.ground, stuck)
    return now._replace(stuck=stuck, shut=jnp.where(p.catching.shut, p.meets.side, shut))
