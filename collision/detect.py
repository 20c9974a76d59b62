"""detect: pairs of shapes that are near each other, with gap, normal and points. It is the entry of this floor.

Link poses (kinematics) -> shape poses -> candidates (`broad.py`) -> rows of each group of equal kinds (`narrow.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from ..engine.algebra.fence import lane_programs
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import compact, map_to_last
from ..engine.forest import Forest
from ..engine.model import Model
from ..engine.native.function import native
from ..engine.results import NOT_FINITE, OK, PAIRS_FULL
from ..engine.rows import take
from ..engine.shaped import Float
from ..engine.topology import Topology
from .bounds import bounding_spheres
from .broad import Candidates, PairGroup, PairPlan, candidates, pair_plan
from .by_need import Indices, Pairs, meet_near, volumes
from .culling.volumes import Volume
from .fcl_backend import fcl_proximities
from .geometry.near import Near
from .narrow import KERNELS, kernel_key, meet
from .posed import Shapes, rows_first, shapes_at, shapes_known, shapes_picked
from .proximities import Proximities
from .seams import smooth_seams

FEW = 256  # rows: up to this many are not compacted


def detect(
    model: Model,
    q: Float[Array, "*#batch nq"],
    *,
    backend: str = "device",
    margin: float | None = None,
    max_pairs: int | None = None,
) -> Proximities:
    """Gaps, normals and points of near pairs at the coordinates q, by one of two detectors.

    On the device, gaps and the closest points are exact to rounding (cylinders and ellipsoids: points to 5e-6 of the
    size). Derivatives of the gap treat points and normals as moving along with the bodies; they are exact for
    gaps, and for all results of spheres, capsules and planes.

    backend: "device" (kernels that run where jax runs; every shape except meshes with convex="none") or "fcl" (the
        Flexible Collision Library on the host; slower, to its own tolerance of about 1e-4 of the size; all shapes).
    margin: pairs farther apart are left out [m]. None: all pairs, or, in a scene with more pairs than the capacity,
        those whose bounding spheres meet.
    max_pairs: capacity for near pairs in each group of equal kinds. None: all pairs up to 1024, beyond that 8 or 16 per
        shape. `result.code` tells whether it was enough.
    """
    if backend == "device":
        return _on_device(model, q, margin, max_pairs)
    if backend == "fcl":
        return _by_fcl(model, q, margin)
    raise ValueError(f'backend is {backend!r}; it must be "device" or "fcl"')


def _by_fcl(model: Model, q: Array, margin: float | None) -> Proximities:
    shapes = shapes_at(model, q)
    position = jnp.moveaxis(jnp.stack(shapes.pose.p.xyz, -1), 0, -2)
    rows = [jnp.stack(row.xyz, -1) for row in shapes.pose.R.rows]
    rotation = jnp.moveaxis(jnp.stack(rows, -2), 0, -3)
    near = fcl_proximities(model, position, rotation, jnp.inf if margin is None else margin)
    if not model.topology.filtered:
        return near
    touches = jnp.broadcast_to(model.pair_touches, (*near.pair.shape[:-1], len(model.topology.pairs)))
    active = near.active & (jnp.take_along_axis(touches, jnp.maximum(near.pair, 0), -1) > 0)
    pair, gap = jnp.where(active, near.pair, -1), jnp.where(active, near.gap, jnp.inf)
    normal, a, b = (jnp.where(active[..., None], x, 0) for x in (near.normal, near.point_a, near.point_b))
    return Proximities(pair, active, gap, normal, a, b, near.code, near.needed)


@functools.partial(jax.jit, static_argnames=("max_pairs",))
def _on_device(model: Model, q: Array, margin: Array | float | None, max_pairs: int | None) -> Proximities:
    if not lane_programs():
        return _proximities(max_pairs, model, q, margin)
    near = functools.partial(_lane, max_pairs)
    leaves, tree = jax.tree.flatten((model, q, margin))
    own = [*(Model.base_ndim(name) for name in model.parameters), 1, 0]  # axes without lanes
    arrays = [(x, jnp.ndim(x) - n) for x, n in zip(leaves, own, strict=False)]
    lanes = np.broadcast_shapes(Forest.of(model, q=q).batch, *(jnp.shape(x)[:n] for x, n in arrays))
    if not lanes:
        return near(model, q, margin)
    some = [x if n <= 0 else _along_one_axis(x, n, lanes) for x, n in arrays]
    axes = [0 if n > 0 else None for _, n in arrays]
    proximities = jax.vmap(lambda x: near(*jax.tree.unflatten(tree, x)), in_axes=(axes,))(some)
    return jax.tree.map(lambda x: x.reshape(*lanes, *x.shape[1:]), proximities)


def _along_one_axis(x: Array, n: int, lanes: tuple[int, ...]) -> Array:
    """Return x, whose first n axes are lanes, with a single axis of lanes."""
    return jnp.broadcast_to(x, (*lanes, *x.shape[n:])).reshape(math.prod(lanes), *x.shape[n:])


@native
def _lane(max_pairs: int | None, model: Model, q: Array, margin: Array | float | None) -> Proximities:
    """Detect in one scene, as a native program."""
    return _proximities(max_pairs, model, q, margin)


def _proximities(max_pairs: int | None, model: Model, q: Array, margin: Array | float | None) -> Proximities:
    return _detect(max_pairs, model, q, margin)[0]


def detect_with_bounds(
    model: Model,
    q: Array,
    look: Array,
    *,
    reach: Array | None = None,
    max_pairs: int | None = None,
    still: Array | None = None,
    max_near: int | None = None,
    max_touching: int | None = None,
) -> tuple[Proximities, Proximities]:
    """Near pairs and lower bounds of the distances of all pairs, at the coordinates q (*batch, nq).

    The first result has the rows of `detect` on the device for pairs that are near, the second one row per pair.
    This is its first row if it is near. Otherwise its gap is a lower bound along the normal, and its points are on
    planes that bound the shapes.

    look: (ns, *batch) range of each shape [m]. A pair whose kernel searches is near if its bounding volumes are not
        farther apart than the sum of its two ranges.
    reach: (ns, *batch) reach of each shape [m]. A pair whose bounding spheres are farther apart than the sum of its two
        reaches may have no row. A pair whose kernel does not search is near within that distance. None: all pairs have
        rows.
    still: (ns, *batch) bool, shapes that do not move; pairs of two of these have no rows. None: all shapes may move.
    max_near: capacity for near pairs of shapes of two kinds, if their kernel searches; None: all pairs.
    max_touching: capacity for rows that touch and may be at a seam (`seams.py`); None: all rows.
    """
    return _detect(max_pairs, model, q, None, look, reach, still, max_near, max_touching)


def _detect(
    max_pairs: int | None,
    model: Model,
    q: Array,
    margin: Array | float | None,
    look: Array | None = None,
    reach: Array | None = None,
    still: Array | None = None,
    max_near: int | None = None,
    max_touching: int | None = None,
) -> tuple[Proximities, Proximities]:
    shapes = shapes_at(model, q)
    pairs = pair_plan(model.topology, max_pairs)
    near = _candidates(shapes, pairs, 0.0 if margin is None else margin, reach, still)
    every = tuple(group for group, some in zip(pairs.groups, near, strict=True) if some is None)
    around = None if look is None else Surroundings(volumes(shapes), look, reach)
    both = [_rows_of(shapes, bucket, around, still, max_near) for bucket in _buckets(model.topology, every)]
    needed = jnp.int32(0)
    for part, _ in both:
        if part.needed is not None:
            needed = jnp.maximum(needed, jnp.where(part.needed > len(part.pair), part.needed, 0))
    for group, some in zip(pairs.groups, near, strict=True):
        if some is not None:
            both.append(_rows_of_candidates(shapes, group, some, around))
            needed = jnp.maximum(needed, jnp.where(some.needed > group.capacity, some.needed, 0))
    code = jnp.where(_all_finite(shapes), jnp.where(needed > 0, PAIRS_FULL, OK), NOT_FINITE).astype(jnp.int32)
    status = code, jnp.broadcast_to(needed, code.shape)
    met = _surface(shapes, [part for part, _ in both], margin, status)
    if around is not None:
        met = smooth_seams(shapes, around.volumes, met, max_touching)
    bounds = [_Part(part.pair, part.rows[:1]) for part, _ in both] + [part for _, part in both if part is not None]
    return met, _surface(shapes, bounds, None, status, in_front=any(some is not None for some in near))


def _all_finite(shapes: Shapes) -> Array:
    """Return whether all shapes of a lane and their poses are finite, (*batch)."""
    sound = [jnp.isfinite(x).all(0) for x in jax.tree.leaves(shapes.pose)]
    sound += [jnp.isfinite(shapes.parameter(name)).all((0, -1)) for name in ("shape_size", "points")]
    return functools.reduce(jnp.logical_and, sound)


class Bucket(NamedTuple):
    """Pairs of shapes that share one call of a kernel.

    kinds: a key of KERNELS.
    first, second: the shapes of the pairs, in that order.
    swapped: whether the second is the pair's shape A.
    pair: rows of `topology.pairs`.
    """

    kinds: tuple[str, str]
    first: tuple[int, ...]
    second: tuple[int, ...]
    swapped: tuple[bool, ...]
    pair: tuple[int, ...]


@functools.lru_cache(maxsize=256)
def _buckets(topology: Topology, groups: tuple[PairGroup, ...]) -> tuple[Bucket, ...]:
    """Sort the pairs: hulls by their number of vertices, rounded up to a power of two; each heightfield apart."""

    def like(shape: int) -> int:
        if topology.shape_kinds[shape] == "hull":
            start, stop = topology.shape_points[shape]
            return max(8, 1 << (stop - start - 1).bit_length())
        return shape if topology.shape_kinds[shape] == "heightfield" else 0

    sorted_by: dict[tuple[tuple[str, str], int, int], list[tuple[int, int, bool, int]]] = {}
    for group in groups:
        kinds, swap = kernel_key(*group.kinds)
        first, second = (group.b, group.a) if swap else (group.a, group.b)
        for a, b, pair in zip(first.tolist(), second.tolist(), group.pair.tolist(), strict=True):
            sorted_by.setdefault((kinds, like(a), like(b)), []).append((a, b, swap, pair))
    return tuple(Bucket(kinds, *zip(*rows, strict=True)) for (kinds, _, _), rows in sorted_by.items())


class Surroundings(NamedTuple):
    """Bounding volumes and ranges of all shapes.

    volumes: bounding volumes.
    look, reach: see `detect_with_bounds`.
    """

    volumes: Volume
    look: Array
    reach: Array | None

    def within(self, a: Indices, b: Indices) -> Array | None:
        """Largest distance (n, *batch) [m] of near pairs of shapes (n,) or (n, *batch); None: no limit."""
        if self.reach is None:
            return None
        if isinstance(a, np.ndarray):
            return take(self.reach, a.tolist()) + take(self.reach, b.tolist())
        return jnp.take_along_axis(self.reach, a, 0) + jnp.take_along_axis(self.reach, b, 0)


class _Part(NamedTuple):
    """Rows of some pairs.  pair: (n, *batch or ones) rows of `topology.pairs`, -1 for none.  rows: those of each pair,
    the closest first, components (n, *batch).  within: (n, *batch) [m] farther rows do not count; None: all count.
    needed: (*batch) number of pairs; if it is above n, some are missing. None: none are missing."""

    pair: Array
    rows: tuple[Near, ...]
    within: Array | None = None
    needed: Array | None = None


def _candidates(
    shapes: Shapes, pairs: PairPlan, margin: Array | float, reach: Array | None, still: Array | None
) -> Sequence[Candidates | None]:
    """The candidates of each group; None where every pair is a candidate."""
    every = [group.whole for group in pairs.groups]
    if all(every):
        return [None] * len(every)
    ball, pose = bounding_spheres(shapes.model), shapes.pose
    center, radius = rows_first(ball.center, shapes.batch), rows_first(ball.radius[..., None], shapes.batch)[..., 0]
    up, radius = pose.R.columns[2], radius if reach is None else radius + reach
    near = candidates(pairs, pose.R @ Vec3.of(center) + pose.p, radius, up, margin, still)
    return [None if all_of_it else of_group for all_of_it, of_group in zip(every, near, strict=True)]


def _rows_of(
    shapes: Shapes, bucket: Bucket, around: Surroundings | None, still: Array | None, max_near: int | None
) -> tuple[_Part, _Part | None]:
    own = (-1, *(1,) * len(shapes.batch))
    swapped = None if not any(bucket.swapped) else np.asarray(bucket.swapped).reshape(own)
    pair, ends = np.asarray(bucket.pair, np.int32), [np.asarray(x, np.int32) for x in bucket[1:3]]
    there = np.True_ if still is None else ~(still[ends[0]] & still[ends[1]])
    if shapes.model.topology.filtered:
        there = there & _touches(shapes, pair.reshape(own))
    if _by_need(bucket.kinds, around):
        return _meet_near(shapes, around, Pairs(bucket.kinds, ends[0], ends[1], swapped, there), pair, max_near)
    a, b = (shapes_known(shapes, kind, index) for kind, index in zip(bucket.kinds, bucket[1:3], strict=True))
    pair = jnp.where(there, jnp.asarray(pair).reshape(own), -1)
    return _Part(pair, meet(bucket.kinds, a, b, swapped), around and around.within(*ends)), None


def _rows_of_candidates(
    shapes: Shapes, group: PairGroup, near: Candidates, around: Surroundings | None
) -> tuple[_Part, _Part | None]:
    kinds, swap = kernel_key(*group.kinds)
    a, b, pair = group.shapes_of(near.row)
    if shapes.model.topology.filtered:
        pair = jnp.where((pair >= 0) & _touches(shapes, jnp.maximum(pair, 0)), pair, -1)
    a, b, swapped = (b, a, np.True_) if swap else (a, b, None)
    if _by_need(kinds, around):
        return _meet_near(shapes, around, Pairs(kinds, a, b, swapped, pair >= 0), pair)
    first, second = (shapes_picked(shapes, kind, index) for kind, index in zip(kinds, (a, b), strict=True))
    return _Part(pair, meet(kinds, first, second, swapped), around and around.within(a, b)), None


def _touches(shapes: Shapes, pair: Indices) -> Array:
    """Return whether pairs may touch now, (n, *batch or ones).  pair: (n, *batch or ones) rows of `topology.pairs`."""
    touches = rows_first(shapes.model.pair_touches[..., None], shapes.batch)[..., 0]
    lanes = jnp.broadcast_shapes(pair.shape[1:], touches.shape[1:])
    table, rows = (jnp.broadcast_to(x, (len(x), *lanes)) for x in (touches, pair))
    return jnp.take_along_axis(table, rows, 0) > 0


def _by_need(kinds: tuple[str, str], around: Surroundings | None) -> bool:
    """Return whether bounding volumes are checked first. Heightfields have none: their kernel finds what is near."""
    return around is not None and KERNELS[kinds].searches and "heightfield" not in kinds


def _meet_near(
    shapes: Shapes, around: Surroundings | None, pairs: Pairs, pair: Indices, capacity: int | None = None
) -> tuple[_Part, _Part]:
    """Rows of near pairs, and bounds of all.  pair: (n,) or (n, *batch) rows of `topology.pairs`."""
    assert around is not None
    met = meet_near(shapes, around.volumes, around.look, pairs, capacity)
    at = jnp.maximum(met.order, 0)
    looked = jnp.asarray(pair)[at] if pair.ndim == 1 else jnp.take_along_axis(pair, at, 0)
    every = jnp.asarray(pair).reshape(len(pair), *pair.shape[1:], *(1,) * (len(shapes.batch) + 1 - pair.ndim))
    return _Part(jnp.where(met.order < 0, -1, looked), met.rows, needed=met.needed), _Part(every, (met.apart,))


def _surface(
    shapes: Shapes, parts: list[_Part], margin: Array | float | None, status: tuple[Array, Array], in_front: bool = True
) -> Proximities:
    """Join the parts' rows to arrays, the rows of a pair one after another.

    margin: (*batch) [m] farther rows are inactive; None: no limit.  status: code and needed (*batch).
    in_front: move the active rows to the front if there are more than FEW rows; not worth it if nearly all are active.
    """
    batch, dtype = shapes.batch, shapes.pose.p.x.dtype

    def cell(part: _Part, row: Near) -> list[Array]:
        """Columns of a part's row: whether it is there, its pair, gap, normal and points."""
        there = jnp.isfinite(row.gap) & (part.pair >= 0)
        there = there if part.within is None else there & (row.gap <= part.within)
        there = there if margin is None else there & (row.gap <= margin)
        columns = there, part.pair, row.gap, *row.normal.xyz, *row.a.xyz, *row.b.xyz
        return [jnp.broadcast_to(x, (len(part.pair), *batch)) for x in columns]

    cells = [[cell(part, row) for row in part.rows] for part in parts]

    def woven(k: int, kind: DTypeLike) -> Array:
        pieces = [jnp.stack([x[k] for x in rows], 1).reshape(-1, *batch).astype(kind) for rows in cells]
        return jnp.concatenate([jnp.zeros((0, *batch), kind), *pieces])

    active = woven(0, bool)
    if len(active) <= FEW or not in_front:
        columns = [woven(1, jnp.int32), woven(2, dtype), *(jnp.where(active, woven(k, dtype), 0) for k in range(3, 12))]
    else:
        given = [jnp.concatenate([x[k] for rows in cells for x in rows]) for k in range(1, 12)]
        order, active = compact(active, len(active))

        def some(given: list[Array], rows: tuple[Array, Array]) -> list[Array]:
            at, there = rows
            return [jnp.where(there, jnp.take_along_axis(x, at, 0), 0) for x in given]

        row_order = jnp.asarray(_row_order(tuple((len(part.pair), len(part.rows)) for part in parts)))
        columns = map_to_last(some, active, given, (row_order[order], active), FEW)
    pair, gap, *xyz = (jnp.moveaxis(x, 0, -1) for x in columns)
    active = jnp.moveaxis(active, 0, -1)
    normal, a, b = (jnp.stack(xyz[k : k + 3], -1) for k in (0, 3, 6))
    return Proximities(jnp.where(active, pair, -1), active, jnp.where(active, gap, jnp.inf), normal, a, b, *status)


@functools.lru_cache(maxsize=256)
def _row_order(sizes: tuple[tuple[int, int], ...]) -> np.ndarray:
    """Indices of all rows, such that the rows of a pair come one after another, in an array that holds the first rows
    of a part one after another, then the second ones.  sizes: (pairs, rows of each) of the parts."""
    order, start = [np.zeros(0, np.int32)], 0
    for n, rows in sizes:
        order.append(start + np.arange(n * rows, dtype=np.int32).reshape(rows, n).T.reshape(-1))
        start += n * rows
    return np.concatenate(order)
