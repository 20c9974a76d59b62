"""Bodies near a shape and bodies in triggers of an exported world, as `scenes/live/` finds them."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...collision.shapes import Shape
from ..live.asking import near_probe, own_pose
from ..live.triggers import Trigger, compose_poses
from ..live.world import Live
from .named import owners, things

Distances = Callable[[Array, Array, Array, Array, Array], tuple[Array, Array]]


def distances(live: Live, shape: Shape) -> Distances:
    """Return a function that computes the least gap of each thing to a shape (things,) [m], inf if it is more than
    `within`, and the first row with that gap.

    The function's arguments: coordinates, position (3,) and quaternion (4,) of the shape, `within` [m], and
    (ns,) bool which shapes it can overlap."""
    model, own, owner, count = live._parts.questions.probing(shape), own_pose(shape), owners(live), len(things(live))
    first = jnp.asarray(np.array(model.topology.pairs, np.int32).reshape(-1, 2)[:, 0])

    def nearest(q: Array, position: Array, quaternion: Array, within: Array, among: Array) -> tuple[Array, Array]:
        near = near_probe(model, q, jnp.asarray(own, q.dtype), position, quaternion)
        number = first[jnp.maximum(near.pair, 0)]
        thing = jnp.asarray(owner)[number]
        gap = jnp.where(near.active & (near.gap <= within) & among[number], near.gap, jnp.inf)
        least = jnp.full(count, jnp.inf, q.dtype).at[thing].min(gap)
        rows = jnp.arange(len(gap), dtype=jnp.int32)
        mine = jnp.where(gap == least[thing], rows, len(gap))
        return least, jnp.full(count, len(gap), jnp.int32).at[thing].min(mine)

    return nearest


class Triggers:
    """Triggers of a world, whose shapes and poses are constants in a program."""

    def __init__(self, live: Live) -> None:
        self.looks = [(trigger, distances(live, trigger.shape)) for trigger in live._triggers]
        self.names = live.model.topology.names

    def inside(self, layers: Array, q: Array, pose: Array, waits: Array) -> Array:
        """Return (triggers, nl), 1 for bodies that are in a trigger.

        layers: (ns, 2).  pose: (nl, 7) of all links.  waits: (nl,) bool, spare bodies that are not there."""
        return jnp.stack([self._inside(*look, layers, q, pose, waits) for look in self.looks])

    def _inside(self, trigger: Trigger, look: Distances, layers: Array, q: Array, pose: Array, waits: Array) -> Array:
        links, pose_of_trigger, there = len(self.names), jnp.asarray(trigger.place, q.dtype), ~waits
        if trigger.body is not None:
            carrier = self.names.index(trigger.body)
            pose_of_trigger = jnp.stack(compose_poses(pose_of_trigger, pose[carrier]))
            there = there & ~waits[carrier] & (np.arange(links) != carrier)
        gap, _ = look(q, pose_of_trigger[:3], pose_of_trigger[3:], jnp.zeros((), q.dtype), layers[:, 0] != 0)
        return (jnp.isfinite(gap[:links]) & there).astype(jnp.int32)


def inside_at_start(live: Live) -> np.ndarray:
    """Return (triggers, nl), 1 for bodies that are in a trigger when the world is made."""
    some = [live._within(trigger, live._parts.start) for trigger in live._triggers]
    return np.array([[name in names for name in live.model.topology.names] for names in some], np.int32)
