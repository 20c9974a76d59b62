"""Who sleeps in an exported world: what `scenes/live/asleep.py` does on the host, as programs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.dynamics.trees import trees_of
from ...engine.topology import Topology


def any_of(tree: np.ndarray, yes: Array, n: int) -> Array:
    """(n,) bool, trees of which anything is so.  tree: of each entry, n of the world."""
    return jnp.zeros(n + 1, bool).at[jnp.asarray(tree)].max(yes)[:n]


def woken(topology: Topology, island: Array, told: Array, trees: Array, dofs: Array) -> tuple[Array, Array]:
    """Who sleeps (T,), and what the motors of those are told (nv,), with the islands of some awake: of these trees (T,)
    bool, and of those with these degrees of freedom (nv,) bool."""
    called = (trees | any_of(tree_of_dofs(topology), dofs, len(island))) & (island >= 0)
    mine = (island[:, None] == island[None]) & called[None]
    after = jnp.where(mine.any(1), -1, island)
    return after, jnp.where(called.any(), _those_of(topology, after, told), told)


def fallen(topology: Topology, before: Array, after: Array, told: Array, motors: Array) -> Array:
    """What the motors of those that sleep after a frame are told (nv,).  motors: what all are told."""
    return jnp.where((before == after).all(), told, _those_of(topology, after, motors))


def tree_of_dofs(topology: Topology) -> np.ndarray:
    """(nv,)"""
    trees = trees_of(topology)
    return trees.block // max(trees.w, 1)


def _those_of(topology: Topology, island: Array, motors: Array) -> Array:
    sleeps = jnp.append(island >= 0, False)[tree_of_dofs(topology)]
    return jnp.where(sleeps, motors, 0)
