"""The sleep of an exported world: jax programs that do what `scenes/live/asleep.py` does on the host."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.dynamics.trees import trees_of
from ...engine.topology import Topology


def any_of(tree: np.ndarray, yes: Array, n: int) -> Array:
    """Trees with a true entry, (n,) bool.  tree: that of each entry, n for the world."""
    return jnp.zeros(n + 1, bool).at[jnp.asarray(tree)].max(yes)[:n]


def wake(topology: Topology, island: Array, last_motors: Array, trees: Array, dofs: Array) -> tuple[Array, Array]:
    """Wake the islands of some trees (T,) bool, and of trees with some degrees of freedom (nv,) bool.

    Return the island of each sleeping tree (T,), and the commands to their motors when they fell asleep (nv,)."""
    woken = (trees | any_of(tree_of_dofs(topology), dofs, len(island))) & (island >= 0)
    mine = (island[:, None] == island[None]) & woken[None]
    after = jnp.where(mine.any(1), -1, island)
    return after, jnp.where(woken.any(), _zero_if_awake(topology, after, last_motors), last_motors)


def motors_of_sleepers(topology: Topology, before: Array, after: Array, last_motors: Array, motors: Array) -> Array:
    """Commands to the motors of trees that sleep after a frame (nv,).  motors: the frame's commands to all."""
    return jnp.where((before == after).all(), last_motors, _zero_if_awake(topology, after, motors))


def tree_of_dofs(topology: Topology) -> np.ndarray:
    """Tree of each degree of freedom (nv,)."""
    trees = trees_of(topology)
    return trees.block // max(trees.w, 1)


def _zero_if_awake(topology: Topology, island: Array, motors: Array) -> Array:
    sleeps = jnp.append(island >= 0, False)[tree_of_dofs(topology)]
    return jnp.where(sleeps, motors, 0)
