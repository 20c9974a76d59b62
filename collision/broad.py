"""Broad phase: lists of fixed length of the pairs of shapes that may be near. It has no state between calls.

The pairs of a topology are sorted into groups of equal kinds, one vectorised narrow-phase kernel each. A group has a
capacity for candidates, and one of three ways to find them, chosen when the plan is made:

every     all its pairs fit: each is a candidate and nothing is computed;
matrix    bounding spheres of all pairs (`culling/pair_matrix.py`);
cells     a grid (`culling/cells.py`), for groups whose matrix would take longer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ..engine.algebra.fence import lane_programs
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import WORD, pack
from ..engine.rows import take
from ..engine.topology import Topology
from .culling.bitset import count_below, first_set
from .culling.cells import near_in_cells
from .culling.pair_matrix import CullingSphere, near_matrix

T = TypeVar("T")
Ints = NDArray[np.int32]

ALL_PAIRS = 1024  # pairs of a scene: up to this many, all are candidates
PER_SHAPE, PER_SPHERE = 16, 8  # candidates per shape: bounding spheres of boxes in a heap overlap more than balls
FEWEST = 64
CELLS_ABOVE = 2**22  # entries of the matrix above which cells are faster: 2000 shapes, 1.2 ms by either on a CPU core
IN_MACHINE_CODE = 2**26  # the same for machine code, which has no sort: 8000 shapes, 20 ms
UNBOUNDED = frozenset({"plane", "heightfield"})  # no cell holds them


@dataclass(frozen=True, eq=False)
class PairGroup:
    """The pairs of two kinds of shapes: n of them, ordered by shape A, then B.

    a, b (n,) shape indices, a < b; pair (n,) their rows of `topology.pairs`.  capacity: room for so many candidates.
    way: "every", "matrix" or "cells".  table: None for "every".
    """

    kinds: tuple[str, str]
    a: Ints
    b: Ints
    pair: Ints
    capacity: int
    way: str
    table: PairTable | None

    @property
    def n(self) -> int:
        return len(self.pair)

    @property
    def whole(self) -> bool:
        """Return whether the narrow phase runs for all its pairs. The kernel of a heightfield finds what is near."""
        return self.way == "every" or "heightfield" in self.kinds

    def shapes_of(self, row: Array) -> tuple[Array, Array, Array]:
        """Return shapes A and B and the row of `topology.pairs` of candidates; an empty slot has pair -1 and the shapes
        of the group's first pair, so that the values computed for it are finite."""
        real = row < self.n
        at = jnp.where(real, row, 0)
        a, b, pair = (jnp.asarray(x)[at] for x in (self.a, self.b, self.pair))
        return a, b, jnp.where(real, pair, -1)


@dataclass(frozen=True, eq=False)
class PairTable:
    """The set of pairs of a group, as bits.

    shapes_a (na,), shapes_b (nb,), shapes (n,): shapes that are first, second, either, ascending.
    row_of, column_of (ns,): index of each shape in shapes_a and shapes_b, -1 elsewhere.
    allowed (na, words) uint32: bit k of word w of row i: is (shapes_a[i], shapes_b[32 w + k]) a pair of the group?
    before (na, words) int32: number of the group's pairs before the first of the word.
    """

    shapes_a: Ints
    shapes_b: Ints
    shapes: Ints
    row_of: Ints
    column_of: Ints
    allowed: NDArray[np.uint32]
    before: Ints


@dataclass(frozen=True, eq=False)
class PairPlan:
    """The groups of a topology. Static: one object per topology and `max_pairs`, equal only to itself."""

    groups: tuple[PairGroup, ...]

    @functools.cached_property
    def sifted(self) -> tuple[int, ...]:
        """Shapes with pairs that may be left out if they are far apart."""
        parts = [side for group in self.groups if not group.whole for side in (group.a, group.b)]
        return tuple(np.unique(np.concatenate(parts)).tolist()) if parts else ()


class Candidates(NamedTuple):
    """Candidates of a group.

    row: (capacity, *batch) int32, indices into the group's list of pairs, ascending, group.n in an empty slot.
    needed: (*batch) int32, the capacity needed for all of them; above the group's, some are missing.
    """

    row: Array
    needed: Array


@functools.lru_cache(maxsize=256)
def pair_plan(topology: Topology, max_pairs: int | None = None) -> PairPlan:
    """Plan of the broad phase.  max_pairs: capacity of every group; None: see `default_capacity`."""
    pairs = np.fromiter(chain.from_iterable(topology.pairs), np.int32, 2 * len(topology.pairs)).reshape(-1, 2)
    return plan_pairs(topology.shape_kinds, topology.shape_links, pairs, max_pairs)


def plan_pairs(
    kinds: tuple[str, ...], links: tuple[int, ...], pairs: Ints, max_pairs: int | None = None, way: str | None = None
) -> PairPlan:
    """Make a plan from a table of pairs (np, 2), smaller shape first.  way: that of every group, whatever its size."""
    if max_pairs is not None and max_pairs < 1:
        raise ValueError(f"max_pairs is {max_pairs}; it must be positive: leave it out for the default")
    names, most = sorted(set(kinds)), IN_MACHINE_CODE if lane_programs() else CELLS_ABOVE
    kind = np.array([names.index(k) for k in kinds], int)
    moving = np.array(links, int) >= 0
    order = np.lexsort((pairs[:, 1], pairs[:, 0])).astype(np.int32)
    sort = kind[pairs[order, 0]] * len(names) + kind[pairs[order, 1]]
    groups = []
    for s in np.unique(sort):
        rows = order[sort == s]
        both = names[s // len(names)], names[s % len(names)]
        capacity = default_capacity(both, pairs[rows], moving, len(pairs)) if max_pairs is None else max_pairs
        shapes = [len(np.unique(pairs[rows, side])) for side in (0, 1)]
        crowd = shapes[0] * shapes[1] > most and not UNBOUNDED & set(both)
        if way == "cells" or (way is None and crowd and len(rows) > capacity):
            # static shapes are often large: they are kept out of the cells, since they would fill them all
            free = moving[pairs[rows]].all(1)
            parts = [(rows[free], "cells"), (rows[~free], "matrix")]
        else:
            parts = [(rows, way or "matrix")]
        groups += [_group(both, pairs, rows, capacity, way, len(kinds)) for rows, way in parts if len(rows)]
    return PairPlan(tuple(groups))


def default_capacity(kinds: tuple[str, str], pairs: Ints, moving: NDArray[np.bool_], in_all: int) -> int:
    """All pairs in a small scene; in a large one a fixed number for each moving shape of the group, and as many more
    if there are so many static shapes."""
    if in_all <= ALL_PAIRS:
        return ALL_PAIRS
    shapes = np.unique(pairs)
    movers = int(moving[shapes].sum())
    each = PER_SPHERE if kinds == ("sphere", "sphere") else PER_SHAPE
    return max(FEWEST, movers * (each + min(each, len(shapes) - movers)))


def _group(kinds: tuple[str, str], pairs: Ints, rows: Ints, capacity: int, way: str, n_shapes: int) -> PairGroup:
    a, b = pairs[rows, 0], pairs[rows, 1]
    if capacity >= len(rows):
        return PairGroup(kinds, a, b, rows, len(rows), "every", None)
    shapes_a, shapes_b = np.unique(a), np.unique(b)
    row_of, column_of = np.full(n_shapes, -1, np.int32), np.full(n_shapes, -1, np.int32)
    row_of[shapes_a], column_of[shapes_b] = np.arange(len(shapes_a)), np.arange(len(shapes_b))
    member = np.zeros((len(shapes_a), -(-len(shapes_b) // WORD) * WORD), bool)
    member[row_of[a], column_of[b]] = True
    allowed = np.packbits(member, axis=1, bitorder="little").view("<u4").astype(np.uint32)
    each = member.reshape(len(shapes_a), -1, WORD).sum(2, dtype=np.int32)
    before = (np.cumsum(each).reshape(each.shape) - each).astype(np.int32)
    table = PairTable(shapes_a, shapes_b, np.union1d(a, b), row_of, column_of, allowed, before)
    return PairGroup(kinds, a, b, rows, capacity, way, table)


def candidates(
    plan: PairPlan, center: Vec3, radius: Array, up: Vec3, margin: Array | float, still: Array | None = None
) -> list[Candidates]:
    """One entry per group: the pairs whose bounding spheres' gap is at most the margin, ascending.

    center: of each shape's bounding sphere, components (ns, *batch) in W [m]; of a plane, a point of its surface.
    radius: (ns,) or (ns, *batch) [m]; a plane's is not read. up: z axes of the shapes in W, components like center;
    only those of planes and heightfields are read. margin: (*batch) or a number [m], not negative.
    still: (ns, *batch) bool, shapes that do not move; matrix and cells leave out pairs of two of these.

    Matrix and cells find no candidates for a shape that is not finite: the caller, who sees
    the coordinates, gives the lane the code NOT_FINITE. The lists stay valid.
    """
    dtype = jnp.result_type(center.x, radius)
    batch = jnp.broadcast_shapes(jnp.shape(center.x)[1:], jnp.shape(radius)[1:], jnp.shape(margin))
    margin = jnp.broadcast_to(jnp.asarray(margin, dtype), batch)

    def full(x: Array) -> Array:
        x = jax.lax.stop_gradient(jnp.asarray(x, dtype))  # which pairs are near has no derivative
        return jnp.broadcast_to(x.reshape(x.shape + (1,) * (1 + len(batch) - x.ndim)), (len(x), *batch))

    balls = jax.tree.map(full, CullingSphere(center, radius, up))
    return [_WAYS[group.way](group, balls, margin, still) for group in plan.groups]


def _every(group: PairGroup, balls: CullingSphere, margin: Array, still: Array | None) -> Candidates:
    row = jnp.arange(group.n, dtype=jnp.int32).reshape(-1, *(1,) * margin.ndim)
    return Candidates(jnp.broadcast_to(row, (group.n, *margin.shape)), jnp.full(margin.shape, group.n, jnp.int32))


def _matrix(group: PairGroup, balls: CullingSphere, margin: Array, still: Array | None) -> Candidates:
    table = _table(group)
    a, b = (jax.tree.map(lambda x, s=s: take(x, s.tolist()), balls) for s in (table.shapes_a, table.shapes_b))
    allowed = jnp.asarray(table.allowed).reshape(-1)
    before = jnp.asarray(table.before).reshape(-1)

    def first(words: Array, still: Array | None = None) -> Candidates:
        wanted = allowed
        if still is not None:
            rows, columns = (take(still, x.tolist()) for x in (table.shapes_a, table.shapes_b))
            wanted = wanted & ~jnp.where(rows[:, None], pack(columns), jnp.uint32(0)).reshape(-1)
        word, bit, needed = first_set(words & wanted, group.capacity)
        row = before[word] + count_below(allowed[word], bit)
        return Candidates(jnp.where(jnp.arange(group.capacity) < needed, row, group.n), needed)

    words = near_matrix(group.kinds, a, b, margin)
    return _per_lane(first, margin.ndim)(words.reshape(-1, *margin.shape), *_own(still, margin))


def _cells(group: PairGroup, balls: CullingSphere, margin: Array, still: Array | None) -> Candidates:
    table, room = _table(group), group.capacity
    n = len(table.shapes)
    entries = max(PER_SPHERE, -(-room // n))  # so that a capacity of n times the entries of the fullest cell is enough
    filtered = min(n * (n - 1) // 2 - group.n, room)  # near pairs that the group may not have
    row_of, column_of, number = (jnp.asarray(x) for x in (table.row_of, table.column_of, table.shapes))
    allowed, before = jnp.asarray(table.allowed), jnp.asarray(table.before)

    def first(center: Vec3, radius: Array, margin: Array, still: Array | None = None) -> Candidates:
        near = near_in_cells(center, radius, margin, room + filtered, entries)
        i, j = number[near.first], number[near.second]
        r, c = row_of[jnp.minimum(i, j)], column_of[jnp.maximum(i, j)]
        word, bit = allowed[r, c // WORD], (c % WORD).astype(jnp.uint32)
        real = (jnp.arange(room + filtered) < near.n_pairs) & (r >= 0) & (c >= 0) & ((word >> bit) & 1 == 1)
        real = real if still is None else real & ~(still[i] & still[j])
        row = jnp.sort(jnp.where(real, before[r, c // WORD] + count_below(word, bit), group.n))[:room]
        needed = jnp.where(near.n_pairs > room + filtered, near.n_pairs, jnp.sum(real, dtype=jnp.int32))
        return Candidates(row, jnp.maximum(needed, jnp.where(near.fullest > entries, near.fullest * n, 0)))

    center, radius, _ = jax.tree.map(lambda x: take(x, table.shapes.tolist()), balls)
    return _per_lane(first, margin.ndim)(center, radius, margin, *_own(still, margin))


def _own(still: Array | None, margin: Array) -> tuple[Array, ...]:
    """`still` per lane, if it is given."""
    return () if still is None else (jnp.broadcast_to(still, (len(still), *margin.shape)),)


def _table(group: PairGroup) -> PairTable:
    if group.table is None:
        raise ValueError(f"the group {group.kinds} is planned as {group.way!r} but has no table")
    return group.table


def _per_lane(function: Callable[..., T], rank: int) -> Callable[..., T]:
    """Map a function of one lane over trailing batch axes."""
    for _ in range(rank):
        function = jax.vmap(function, in_axes=-1, out_axes=-1)
    return function


_WAYS = {"every": _every, "matrix": _matrix, "cells": _cells}
