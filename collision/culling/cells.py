"""Candidates among many shapes by a grid of cells, in time proportional to their number.

A cell is as wide as the largest distance of near shapes: whatever is near lies in the same cell or in one of its 26
neighbours, half of which are examined from the other side. Shapes are sorted by their cell's hash; a table holds the
start of each hash (Teschner et al. 2003, "Optimized spatial hashing", with a sort instead of buckets). Cells repeat
every 1024 in each direction, which gives no wrong candidates (distances are checked) and no edge of the world.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.fence import fence
from ...engine.algebra.vec3 import Vec3
from ...engine.compaction import WORD, pack
from .bitset import first_set
from .pair_matrix import within

PERIOD = 1024  # cells in each direction before they repeat: three coordinates make a key of 30 bits
NOWHERE = PERIOD**3  # key of a shape whose position is not finite
SPARE = 5  # the table has 2^5 slots per shape, so that two cells seldom share one
# one of each pair of opposite neighbours
FORWARD = [d for d in itertools.product((-1, 0, 1), repeat=3) if d > (0, 0, 0)]


class CellPairs(NamedTuple):
    """first, second (capacity,) int32: shapes of each pair, in no particular order; n_pairs (): number of near pairs;
    fullest (): shapes in the fullest cell. Slots from `n_pairs` on are not pairs."""

    first: Array
    second: Array
    n_pairs: Array
    fullest: Array


def near_in_cells(center: Vec3, radius: Array, margin: Array, capacity: int, entries: int) -> CellPairs:
    """All pairs of n shapes whose bounding spheres' gap is at most margin () [m].

    center: components (n,) in W [m]. radius (n,) [m]. At most `capacity` pairs are returned, and at most `entries`
    shapes of a cell examined. Shapes that are not finite are near nothing.
    """
    n = len(radius)
    finite = jnp.isfinite(center.x + center.y + center.z + radius)
    reach = 2 * jnp.max(jnp.where(finite, radius, 0)) + margin
    keys = jnp.where(finite, _keys(center, reach), NOWHERE)
    # sort by hash; hash and index share an integer, which sorts five times faster than two arrays
    number_bits = max(1, (n - 1).bit_length())
    hash_bits = min(number_bits + SPARE, 31 - number_bits)
    hashes = jnp.where(finite, _hash(keys, hash_bits), jnp.uint32(1 << hash_bits))
    both = jnp.sort(hashes << number_bits | jnp.arange(n, dtype=jnp.uint32))
    order, hashes = (both & ((1 << number_bits) - 1)).astype(jnp.int32), both >> number_bits
    begin = jnp.full((1 << hash_bits) + 1, n, jnp.int32).at[hashes].min(jnp.arange(n, dtype=jnp.int32))
    filled = jnp.arange(n, dtype=jnp.int32) - begin[hashes] + 1
    fullest = jnp.max(jnp.where(finite[order], filled, 0))
    # each shape meets those after it in its own cell, and all in the forward neighbours
    keys, center, radius = keys[order], Vec3(center.x[order], center.y[order], center.z[order]), radius[order]
    wanted = jnp.stack([jnp.where(keys == NOWHERE, -1, keys), *(_neighbour(keys, d) for d in FORWARD)])
    start = jnp.concatenate([jnp.arange(1, n + 1, dtype=jnp.int32)[None], begin[_hash(wanted[1:], hash_bits)]])
    near = _meet(keys, center, radius, margin, wanted, start, jnp.arange(entries, dtype=jnp.int32))
    word, bit, n_pairs = first_set(pack(near.reshape(-1)), capacity)
    neighbour, entry, i = jnp.unravel_index(WORD * word + bit, near.shape)
    j = jnp.minimum(start[neighbour, i] + entry, n - 1)
    return CellPairs(order[i], order[j], n_pairs, fullest)


def _keys(center: Vec3, reach: Array) -> Array:
    """Key (n,) of each centre's cell, int32. Cells are a little wider than `reach`; neighbours stay neighbours
    however far out they are, and however an accelerator rounds a division: the world is cut into blocks a power of two
    wide, where a position is exact, and each block into `per_block` cells."""
    reach = jnp.maximum(reach, 1e-30) * 1.002  # wider by more than the rounding of a number below 1024
    # the nearest power of two (no bits of mantissa) times 512: 341 to 683 cells
    block = 512 * jax.lax.reduce_precision(reach, jnp.finfo(reach.dtype).nexp, 0)
    per_block = jnp.floor(block / reach)

    def coordinate(x: Array) -> Array:
        whole = jnp.floor(x / block)
        within_block = jnp.floor((x - whole * block) / block * per_block)
        whole = whole - PERIOD * jnp.floor(whole / PERIOD)
        return (whole.astype(jnp.int32) * per_block.astype(jnp.int32) + within_block.astype(jnp.int32)) % PERIOD

    return (coordinate(center.x) * PERIOD + coordinate(center.y)) * PERIOD + coordinate(center.z)


def _neighbour(keys: Array, step: tuple[int, ...]) -> Array:
    """The key of the cell at an offset in each direction."""
    x, y, z = keys // PERIOD**2, keys // PERIOD % PERIOD, keys % PERIOD
    x, y, z = ((c + d) % PERIOD for c, d in zip((x, y, z), step, strict=True))
    return jnp.where(keys == NOWHERE, -1, (x * PERIOD + y) * PERIOD + z)


def _hash(keys: Array, bits: int) -> Array:
    """Return uint32 below 2^bits: Fibonacci hashing (Knuth, vol. 3, section 6.4), the top bits of a product."""
    return (keys.astype(jnp.uint32) * np.uint32(0x9E3779B1)) >> (32 - bits)


# fenced from the code before, and from the packing, which would undo its vector loop
@fence
def _meet(keys: Array, center: Vec3, radius: Array, margin: Array, wanted: Array, start: Array, entry: Array) -> Array:
    """Mask (neighbours, entries, n): whether shape n is near that entry of its neighbour cell."""
    at = start[:, None] + entry[:, None]
    j = jnp.minimum(at, len(radius) - 1)
    d = Vec3(center.x[j], center.y[j], center.z[j]) - center
    near = within(d.dot(d), radius[j] + radius + margin)
    return near & (at < len(radius)) & (keys[j] == wanted[:, None])
