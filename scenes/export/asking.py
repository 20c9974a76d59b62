"""Overlaps of a shape in an exported world: `scenes/live/asking.py` as a program, for the shapes in `probes`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ..live.world import IDENTITY, Live
from .named import things
from .overlaps import distances
from .programs import REFUSED, Change, Programs, World, unit


def probes(live: Live) -> dict[str, int]:
    """Names of the probes: their kinds, with a number after all except the first of a kind."""
    names: dict[str, int] = {}
    for k, shape in enumerate(live._probes):
        names[shape.kind if shape.kind not in names else f"{shape.kind}_{k}"] = k
    return names


class QueryPrograms:
    """Queries of one world."""

    def __init__(self, programs: Programs) -> None:
        self.programs, self.live = programs, programs.live
        self.things = len(things(self.live))
        self.branches = [distances(self.live, shape) for shape in self.live._probes]

    def overlap(
        self, w: World, probe: Array, position: Array, quaternion: Array, given: Array, within: Array, mask: Array
    ) -> Change:
        """`Live.overlap`: the number of overlaps, or less than 0, and (things,) their indices, the nearest first.
        given: () whether the quaternion is given."""
        rotation = jnp.where(given != 0, quaternion, jnp.asarray(IDENTITY, quaternion.dtype))
        _, valid = self.programs._link(w, jnp.int32(0), position)
        valid &= unit(rotation[None]) & (within == within) & (probe >= 0) & (probe < len(self.branches))
        which = jnp.clip(probe, 0, len(self.branches) - 1)
        among = w["layers"][:, 0] & mask != 0
        gap, row = jax.lax.switch(which, self.branches, w["q"], position, rotation, within, among)
        waits = jnp.pad(self.programs.parked_links(w["q"]), (0, self.things - self.live.model.topology.n_links))
        gap = jnp.where(waits, jnp.inf, gap)
        overlaps = jnp.isfinite(gap)
        before = (gap[None] < gap[:, None]) | ((gap[None] == gap[:, None]) & (row[None] < row[:, None]))
        rank = jnp.where(overlaps, (before & overlaps[None]).astype(jnp.int32).sum(1), self.things)
        numbers = jnp.zeros(self.things + 1, jnp.int32).at[rank].set(jnp.arange(self.things, dtype=jnp.int32))[:-1]
        return {}, (jnp.where(valid, overlaps.astype(jnp.int32).sum(), -REFUSED).astype(jnp.int32), numbers)
