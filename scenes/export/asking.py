"""What a shape would overlap in an exported world: `scenes/live/asking.py` as a program, of the shapes that the world
was given as `probes`."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..live.asking import near_probe, own_pose
from ..live.world import NO_TURN, Live
from .changes import owners, things
from .programs import REFUSED, Change, Programs, World, unit

Distances = Callable[[Array, Array, Array, Array, Array], tuple[Array, Array]]


def probes(live: Live) -> dict[str, int]:
    """Their kinds, and a number behind each that is not the first of its kind."""
    names: dict[str, int] = {}
    for k, shape in enumerate(live._probes):
        names[shape.kind if shape.kind not in names else f"{shape.kind}_{k}"] = k
    return names


class Questions:
    """Of one world."""

    def __init__(self, programs: Programs) -> None:
        self.programs, self.live = programs, programs.live
        self.owner, self.things = owners(self.live), len(things(self.live))
        self.models = [self.live._parts.questions.probing(shape) for shape in self.live._probes]

    def overlap(
        self, w: World, probe: Array, position: Array, quaternion: Array, turned: Array, within: Array, mask: Array
    ) -> Change:
        """`Live.overlap`: how many, or less than 0, and (things,) their numbers, the nearest first.
        turned: () whether the quaternion is given."""
        turn = jnp.where(turned != 0, quaternion, jnp.asarray(NO_TURN, quaternion.dtype))
        _, asked = self.programs._link(w, jnp.int32(0), position)
        asked &= unit(turn[None]) & (within == within) & (probe >= 0) & (probe < len(self.models))
        which = jnp.clip(probe, 0, len(self.models) - 1)
        among = w["layers"][:, 0] & mask != 0
        branches = [self._distances(k) for k in range(len(self.models))]
        gap, row = jax.lax.switch(which, branches, w["q"], position, turn, within, among)
        waits = jnp.pad(self.programs.parked_links(w["q"]), (0, self.things - self.live.model.topology.n_links))
        gap = jnp.where(waits, jnp.inf, gap)
        found = jnp.isfinite(gap)
        before = (gap[None] < gap[:, None]) | ((gap[None] == gap[:, None]) & (row[None] < row[:, None]))
        place = jnp.where(found, (before & found[None]).astype(jnp.int32).sum(1), self.things)
        numbers = jnp.zeros(self.things + 1, jnp.int32).at[place].set(jnp.arange(self.things, dtype=jnp.int32))[:-1]
        return {}, (jnp.where(asked, found.astype(jnp.int32).sum(), -REFUSED).astype(jnp.int32), numbers)

    def _distances(self, probe: int) -> Distances:
        """Of one probe: (things,) the least gap of each, inf of what is farther, and the first row that has it."""
        model, own = self.models[probe], own_pose(self.live._probes[probe])
        first = jnp.asarray(np.array(model.topology.pairs, np.int32).reshape(-1, 2)[:, 0])

        def distances(q: Array, position: Array, turn: Array, within: Array, among: Array) -> tuple[Array, Array]:
            near = near_probe(model, q, jnp.asarray(own, q.dtype), position, turn)
            number = first[jnp.maximum(near.pair, 0)]
            thing = jnp.asarray(self.owner)[number]
            gap = jnp.where(near.active & (near.gap <= within) & among[number], near.gap, jnp.inf)
            least = jnp.full(self.things, jnp.inf, q.dtype).at[thing].min(gap)
            rows = jnp.arange(len(gap), dtype=jnp.int32)
            mine = jnp.where(gap == least[thing], rows, len(gap))
            return least, jnp.full(self.things, len(gap), jnp.int32).at[thing].min(mine)

        return distances
