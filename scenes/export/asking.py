"""What a shape would overlap in an exported world: `scenes/live/asking.py` as a program, of the shapes that the world
was given as `probes`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ..live.world import NO_TURN, Live
from .named import things
from .overlaps import distances
from .programs import REFUSED, Change, Programs, World, unit


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
        self.things = len(things(self.live))
        self.branches = [distances(self.live, shape) for shape in self.live._probes]

    def overlap(
        self, w: World, probe: Array, position: Array, quaternion: Array, turned: Array, within: Array, mask: Array
    ) -> Change:
        """`Live.overlap`: how many, or less than 0, and (things,) their numbers, the nearest first.
        turned: () whether the quaternion is given."""
        turn = jnp.where(turned != 0, quaternion, jnp.asarray(NO_TURN, quaternion.dtype))
        _, asked = self.programs._link(w, jnp.int32(0), position)
        asked &= unit(turn[None]) & (within == within) & (probe >= 0) & (probe < len(self.branches))
        which = jnp.clip(probe, 0, len(self.branches) - 1)
        among = w["layers"][:, 0] & mask != 0
        gap, row = jax.lax.switch(which, self.branches, w["q"], position, turn, within, among)
        waits = jnp.pad(self.programs.parked_links(w["q"]), (0, self.things - self.live.model.topology.n_links))
        gap = jnp.where(waits, jnp.inf, gap)
        found = jnp.isfinite(gap)
        before = (gap[None] < gap[:, None]) | ((gap[None] == gap[:, None]) & (row[None] < row[:, None]))
        place = jnp.where(found, (before & found[None]).astype(jnp.int32).sum(1), self.things)
        numbers = jnp.zeros(self.things + 1, jnp.int32).at[place].set(jnp.arange(self.things, dtype=jnp.int32))[:-1]
        return {}, (jnp.where(asked, found.astype(jnp.int32).sum(), -REFUSED).astype(jnp.int32), numbers)
