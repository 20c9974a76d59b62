"""Clocks: one for all trees, or one for each island. A value of a clock is (*batch), or (T,), one for each tree.

Bodies that cannot meet for some time need not wait for each other: each island tries its own steps, rolls back on its
own, and ends its step at its own impact (after Mirtich's Timewarp, 2000). A tick is accepted when every island has an
acceptable step. So an interval takes as many ticks as its busiest island needs.

`clock_assignment.py` decides which trees share a clock, and for how long. All trees of an island have the same values.
Islands belong to one lane: T trees, no batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..contact.contacts import Contacts
from ..engine.compaction import segment_reduce
from ..engine.dynamics.kinematics import integrate_q
from ..engine.dynamics.trees import trees_of
from ..engine.model import Model
from ..engine.topology import Topology
from .motion.forces import column

STEPS = 4.0  # longest steps that clocks run apart


class OneClock(NamedTuple):
    """One clock for all trees of a lane."""

    def any(self, tree: Array, x: Array) -> Array:
        """Return whether x (C, *batch) is true for any contact.  tree: of `ContactJacobian`."""
        return x.any(0)

    def most(self, tree: Array, x: Array) -> Array:
        """Return the maximum of x (C, *batch) over contacts, at least 0."""
        return x.max(0, initial=0)

    def least(self, tree: Array, x: Array, most: float) -> Array:
        """Return the minimum of x (C, *batch) over contacts, at most `most`."""
        return x.min(0, initial=most)

    def total(self, tree: Array, x: Array) -> Array:
        """Return the sum of x (C, *batch) over contacts."""
        return x.sum(0)

    def of_contacts(self, tree: Array, x: Array) -> Array:
        """Return x in a shape that broadcasts with contacts (C, *batch)."""
        return x

    def of_dofs(self, topology: Topology, x: Array) -> Array:
        """Return x in a shape that broadcasts with joint velocities (*batch, nv)."""
        return column(x)  # type: ignore[return-value]

    def of_coordinates(self, topology: Topology, x: Array) -> Array:
        """Return x in a shape that broadcasts with coordinates (*batch, nq)."""
        return column(x)  # type: ignore[return-value]

    def of_trees(self, x: Array) -> Array:
        """Return x in a shape that broadcasts with values of trees and the world (*batch, T + 1)."""
        return column(x)  # type: ignore[return-value]

    def of_blocks(self, x: Array) -> Array:
        """Return x in a shape that broadcasts with tree blocks (T + 1, w, *batch)."""
        return x

    def either(self, yes: Array, x: Array, y: Array) -> Array:
        """Return x where yes, else y; both are values of clocks, or tree blocks (T + 1, w, *batch)."""
        return jnp.where(yes, x, y)

    def each(self) -> bool:
        """Return whether the clocks' steps may differ."""
        return False

    def apart(self, max_dt: Array | float) -> None:
        """Return the longest time between synchronizations of clocks [s]; None for a single clock."""
        return None

    def of_all(self, x: Array) -> Array:
        """Return whether x is true for all clocks of a lane (*batch)."""
        return x

    def latest(self, x: Array) -> Array:
        """Return the largest of the clocks' values (*batch)."""
        return x

    def waiting(self, asleep: Array | None, h: Array, left: Array, fresh: Array) -> Array | None:
        """Return numbers (T, *batch), -1 for trees whose contacts are detected after a step h; None: all are.

        asleep: trees that sleep.
        left: time to the next synchronization [s].
        fresh: whether the lane has not started yet.
        """
        return asleep

    def under_way(self, tree: Array, contacts: Contacts, h: Array, fresh: Array) -> Contacts:
        """Return the contacts of trees that move in a step."""
        return contacts

    def of_shapes(self, topology: Topology) -> Array | None:
        """Return the clock (ns,) of each shape, T for statics; None for a single clock."""
        return None

    def of_clocks(self, x: Array) -> Array:
        """Return the value of each clock, from values (*batch), or (T,) by `of_shapes`."""
        return x

    def along(self, model: Model, q: Array, v: Array, h: Array) -> Array:
        """Return the coordinates q after h [s] at the velocities v."""
        return integrate_q(model, q, v, h)


class IslandClocks(NamedTuple):
    """One clock for each island.

    island: (T,) the lowest tree of each tree's island.
    """

    island: Array

    def any(self, tree: Array, x: Array) -> Array:
        return self._of(jnp.maximum, tree, x.astype(jnp.int32), 0) > 0

    def most(self, tree: Array, x: Array) -> Array:
        return self._of(jnp.maximum, tree, x, 0)

    def least(self, tree: Array, x: Array, most: float) -> Array:
        return self._of(jnp.minimum, tree, x, most)

    def total(self, tree: Array, x: Array) -> Array:
        return self._of(jnp.add, tree, x, 0)

    def of_contacts(self, tree: Array, x: Array) -> Array:
        return _append_world(x)[tree.min(1)]

    def of_dofs(self, topology: Topology, x: Array) -> Array:
        return x[_tree_of(topology, topology.v_start)]

    def of_coordinates(self, topology: Topology, x: Array) -> Array:
        return x[_tree_of(topology, topology.q_start)]

    def of_trees(self, x: Array) -> Array:
        return _append_world(x)

    def of_blocks(self, x: Array) -> Array:
        return _append_world(x)[:, None]

    def either(self, yes: Array, x: Array, y: Array) -> Array:
        return jnp.where(yes if x.ndim == 1 else self.of_blocks(yes), x, y)

    def each(self) -> bool:
        return True

    def apart(self, max_dt: Array | float) -> Any:
        return STEPS * max_dt

    def of_all(self, x: Array) -> Array:
        return x.all()

    def latest(self, x: Array) -> Array:
        return x.max()

    def waiting(self, asleep: Array | None, h: Array, left: Array, fresh: Array) -> Array | None:
        stand = (h == 0) & ~(h == left).all() & ~fresh  # trees that wait at a synchronization for others
        return jnp.where(stand, 0, -1).astype(jnp.int32)

    def under_way(self, tree: Array, contacts: Contacts, h: Array, fresh: Array) -> Contacts:
        return contacts._replace(active=contacts.active & (self.of_contacts(tree, h > 0) | fresh))

    def of_shapes(self, topology: Topology) -> Array | None:
        tree = trees_of(topology).of_link[np.array(topology.shape_links, int)]  # for link -1 the world, the last one
        return _append_world(self.island, len(self.island))[tree]

    def of_clocks(self, x: Array) -> Array:
        return x[self.island]

    def along(self, model: Model, q: Array, v: Array, h: Array) -> Array:
        return integrate_q(model, q, v * self.of_dofs(model.topology, h), 1.0)

    def _of(self, how: Callable[[Array, Array], Array], tree: Array, x: Array, neutral: float) -> Array:
        trees = len(self.island)
        of_contact = _append_world(self.island, trees)[tree.min(1)]  # the world is last
        return segment_reduce(how, x, of_contact, trees, neutral)[self.island]


Clocks = OneClock | IslandClocks
ONE = OneClock()


def _append_world(x: Array, last: int = 0) -> Array:
    """Return x with an entry for the world appended."""
    return jnp.concatenate([x, jnp.full_like(x[:1], last)])


def _tree_of(topology: Topology, start: tuple[int, ...]) -> np.ndarray:
    return np.repeat(trees_of(topology).of_link[:-1], np.diff(start))
