"""Sleeping islands of a world on the host, part of its saves. See `integrators/islands_asleep.py`.

A push on a body, a change of its pose, or a new command to its motors wakes its island.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...collision.poses import Array
from ...engine.dynamics.trees import trees_of
from ...engine.state import State
from ...engine.topology import Topology


@dataclass(frozen=True)
class Asleep:
    """Sleep of all trees.  island: (T,) the lowest tree of those that each tree sleeps with, -1 if it is awake.
    motors: (nv,) the commands to the motors of sleeping trees, 0 of others."""

    topology: Topology
    island: Array
    motors: Array

    @staticmethod
    def nobody(topology: Topology) -> Asleep:
        return Asleep(topology, np.full(trees_of(topology).n, -1, np.int32), np.zeros(topology.nv))

    @property
    def some(self) -> bool:
        return bool((self.island >= 0).any())

    def without(self, trees: Array) -> Asleep:
        """Wake the islands of these trees (T,) bool."""
        woken = _any(self.island, trees & (self.island >= 0), len(self.island))
        return self._with(np.where(woken[self.island] & (self.island >= 0), -1, self.island)) if woken.any() else self

    def after_pushes(self, wrenches: Array, motors: Array) -> Asleep:
        """The sleep after pushes (nl, 6) and motor commands (nv,) of the next frame."""
        changed = motors != self.motors
        if not (changed.any() or wrenches.any()) or not self.some:
            return self
        commanded = _any(trees_of(self.topology).of_dof, changed, len(self.island))
        return self.without(pushed_trees(self.topology, wrenches) | commanded)

    def after_change(self, before: State, after: State) -> Asleep:
        """The sleep after a change of the state by hand."""
        if not self.some:
            return self
        pairs = (before.q, after.q), (before.v, after.v)
        q, v = (np.not_equal(np.asarray(old), np.asarray(new)).reshape(-1) for old, new in pairs)
        trees, topology, n = trees_of(self.topology), self.topology, len(self.island)
        of_coordinates = np.repeat(trees.of_link[:-1], np.diff(topology.q_start))
        return self.without(_any(of_coordinates, q, n) | _any(trees.of_dof, v, n))

    def after(self, island: Array, motors: Array) -> Asleep:
        """The sleep at the end of a frame. motors: (nv,) the commands to them."""
        if island.tobytes() == self.island.tobytes():
            return self
        return Asleep(self.topology, island, motors)._with(island)

    def _with(self, island: Array) -> Asleep:
        sleeps = np.append(island >= 0, False)[trees_of(self.topology).of_dof]
        return Asleep(self.topology, island, np.where(sleeps, self.motors, 0.0))


def pushed_trees(topology: Topology, wrenches: Array) -> Array:
    """Trees with a link that one of the wrenches (nl, 6) pushes, (T,) bool."""
    trees = trees_of(topology)
    return _any(trees.of_link[:-1], wrenches.any(1), trees.n)


def sound(island: Array) -> bool:
    """Return whether whole numbers (T,) are a valid assignment of islands."""
    if ((island < -1) | (island >= len(island))).any():
        return False
    named = island[island >= 0]
    return bool((island[named] == named).all())


def _any(tree: Array, yes: Any, n: int) -> Array:
    """Trees with a true entry, (n,) bool; tree: that of each entry, n for the world."""
    any_true = np.zeros(n + 1, bool)
    any_true[tree[yes]] = True
    return any_true[:n]
