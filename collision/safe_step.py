"""Conservative advancement: how long shapes stay apart for sure, or overlap so little that it is noticed.

`safe_step` and `undetected_step` bound the time until pairs touch, `longest_step` the time until one has passed through
another undetected.

Derivation. Let n be the normal of a pair, from B to A, and h(u) the support function of a shape. The overlap of convex
A and B is at most the thickness of the slab between their supporting planes: for *any* unit n and any time

    gap(t) >= -h_A(-n) - h_B(n),   with equality now, when n is the direction of closest approach, apart or overlapping.

So gap(t) >= gap - f(t) if f bounds how far both supporting planes approach each other along the fixed n.
`speeds/shape_bounds.py` gives such a bound for each side, as terms c + b t + a t^2/2 that add up over the two sides:

- free body: b = v_com.n + swing w_max, a = g.n, where `swing` bounds the change of the support by rotation
  (`bounds.reach`; it is 0 for centred spheres, whose bound is the exact time of impact). Or, since no point is farther
  than `full` from the centre of mass: b = v_com.n, c = full - (the present support). The later of the two times holds.
- tree in free fall: b = v_com.n + C e, a = g.n + C growth, with C the speed of the link's points per root of energy e.
- any other tree: b = C e, a = C growth, in every direction.
- static shapes: 0.

Gravity enters as a difference: two bodies in free fall approach on straight lines, a body and a fixed link do not.

Heightfields and meshes are not convex: they may approach anywhere, not only along n. Their distance to a moving shape
still changes no faster than that shape moves (Hausdorff distance), so |v| replaces v.n, and |g| replaces g.n.

The pair is safe until the first time with f(t) = d. f is not monotone: if b < 0 the pair separates first, and a > 0
brings it back.

The bound of a tree is weak if a light link hangs on a heavy one, which might give it all its energy: ten times the
actual speed is common. So a run checks trees after a step, by the poses that their links reached: `passage.py`.

Undetected passage (`longest_step`). Nothing has passed through anything in a step if, along n, the interior of A is
still on A's side of the interior of B. The direction of least overlap at its end is then n, or one with less overlap,
and time control notices it. Two conditions are each sufficient; the later time holds.

- The planes approach by at most the gap plus the radius of the smaller of the two inscribed balls.
- An interior point of A and one of B (`middle`), fixed to their links, have moved at most half the distance between
  them and the planes; and the planes approach by at most the gap plus a part of the smaller body's size.

Thin bodies shorten only the first time. The second is short if two plates lie face to face, since their interior points
are as near as the plates are thin, but not if a card stands on another or a coin rolls on its edge. There is no far
side of a plane or a heightfield, so only the size counts for them. The price is that a brief touch may be missed: two
bodies that touch and separate within one step may have overlapped by that part of the smaller one's size if they are
thin, and by the radius of the inscribed ball if they are thick. For planes the part is larger, since only rotation can
bring a shape out again: a free body that turns by an eighth of a radian dips in by about 1/300 of its size.

Contact impulses are not included: the bounds hold until an impulse acts, and resting contacts push all the time. Pairs
that the detector left out, because they are far apart, are bounded by `undetected_step`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.fence import fence
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import compact, map_indexed, segment_reduce
from ..engine.dynamics.trees import trees_of
from ..engine.model import Model
from ..engine.rows import take
from ..engine.state import State
from ..engine.topology import Topology
from .bounds import bounding_spheres, inradius, norm
from .proximities import Proximities
from .speeds.shape_bounds import ShapeBounds, freeze, shape_bounds, table_of

GLANCE = 1 / 64  # of the smaller bounding ball's radius: overlap of a touch that may be missed within a step
FLAT = 1 / 8  # the same for planes, where only rotation brings a shape out again


@jax.jit
def safe_step(
    model: Model,
    state: State,
    near: Proximities,
    *,
    allowance: Array | float = 0.0,
    control: Array | None = None,
    forces: Array | None = None,
) -> Array:
    """Time (...) [s] for which no pair of `near` closes its gap plus the allowance; inf if none ever can.

    The time is 0 for touching pairs that approach; for touching pairs that separate, it is the time until they may be
    as near again. It is also 0 if nothing is known: the state is not finite, or a massless link has no speed bound.

    allowance: number or (...), added to every gap; a negative sum counts as 0 [m].
    control: (..., nv) command to the motors meanwhile; None: their targets.
    forces: (..., nv) largest forces that act meanwhile, of either sign [N m, N].
    """
    extra = jnp.asarray(allowance, near.gap.dtype)[..., None]
    return _earliest_time(model, state, near, jnp.maximum(near.gap + extra, 0.0), control, forces)


@jax.jit
def longest_step(
    model: Model,
    state: State,
    near: Proximities,
    *,
    control: Array | None = None,
    forces: Array | None = None,
    still: Array | None = None,
    within: Array | None = None,
    clock: Array | None = None,
) -> Array:
    """Longest step (...) [s] in which no pair can pass through another undetected; inf if none ever can.

    The planes of a pair approach by at most the gap (0 when overlapping) plus an undetected depth, see the module.

    still: (..., ns) bool, shapes that do not move, whatever forces act on them.
    within: (...) upper limit of the result; pairs that cannot come so near by then are skipped [s].
    clock: (ns,) index of each shape's clock, below T, or T for statics; the result is then (T,), one time per clock.
        The shapes of a pair never have two different clocks.
    """
    distance = jnp.maximum(near.gap, 0.0)
    return _earliest_time(model, state, near, distance, control, forces, undetected_depths, still, within, clock)


@functools.partial(jax.jit, static_argnames="only")
def undetected_step(
    model: Model,
    state: State,
    reach: Array | float,
    *,
    control: Array | None = None,
    forces: Array | None = None,
    only: tuple[int, ...] | None = None,
    still: Array | None = None,
    clock: Array | None = None,
) -> Array:
    """Time (...) [s] for which no pair that is farther apart than the sum of its reaches can touch.

    No shape moves farther than its reach in this time, in any direction.

    reach: (..., ns) or a number [m].
    only: the shapes that count; None: all.
    still, clock: as for `longest_step`.
    """
    side = freeze(shape_bounds(model, state, control, forces), still)
    g = norm(Vec3.of(model.gravity[..., None, :]))
    far = jnp.asarray(reach, side.slope.dtype)
    time = _first_root(*jnp.broadcast_arrays(far, norm(side.velocity) + side.slope, g * side.falls + side.growth))
    index = list(range(time.shape[-1])) if only is None else list(only)
    return least_of_clocks(take(time, index, -1), None if clock is None else clock[np.array(index, int)], model, -1)


def clock_of_pairs(topology: Topology, clock: Array, pair: Array) -> Array:
    """Clock (N,) of each pair (N,), T for pairs with no clock or with two."""
    a, b = (clock[shape] for shape in shapes_of(topology, pair))
    none = trees_of(topology).n
    return jnp.where((a == b) | (b == none), a, jnp.where(a == none, b, none))


def least_of_clocks(time: Array, clock: Array | None, model: Model, axis: int) -> Array:
    """The least time along the axis, (...), or the least for each clock, (T,).

    clock: (n,) clock of each entry; None: all have the same.
    """
    if clock is None:
        return time.min(axis, initial=jnp.inf)
    clocks = trees_of(model.topology).n
    return segment_reduce(jnp.minimum, time, clock, clocks, jnp.inf)


def undetected_depths(model: Model, pair: Array) -> tuple[Array, Array]:
    """Overlaps that may go undetected [m]: the radius of the smaller inscribed ball, and the depth of a brief touch.

    pair: (..., N) rows of `topology.pairs`.
    """
    a, b = shapes_of(model.topology, pair)

    def smaller(x: Array) -> Array:
        least = jnp.minimum(gather_shapes(x, a), gather_shapes(x, b))
        return jnp.where(jnp.isinf(least), 0.0, least)  # inf: two static shapes

    kinds = model.topology.shape_kinds
    mesh, plane = (jnp.array([kind == name for kind in kinds]) for name in ("mesh", "plane"))
    share = jnp.where(mesh[a] | mesh[b], 0.0, jnp.where(plane[a] | plane[b], FLAT, GLANCE))
    return smaller(inradius(model)), smaller(bounding_spheres(model).radius) * share


def shapes_of(topology: Topology, pair: Array) -> tuple[Array, Array]:
    """The two shapes of each pair."""
    a, b = (np.array(side, np.int32) for side in zip(*topology.pairs, strict=True))
    return jnp.asarray(a)[pair], jnp.asarray(b)[pair]


def gather_shapes(x: Array, index: Array) -> Array:
    """Gather x (..., n) at the shapes index (..., N)."""
    return jnp.take_along_axis(*_broadcast_batch(x, index), axis=-1)


def _earliest_time(
    model: Model,
    state: State,
    near: Proximities,
    distance: Array,
    control: Array | None,
    forces: Array | None,
    depths: Callable[[Model, Array], tuple[Array, Array]] | None = None,
    still: Array | None = None,
    within: Array | None = None,
    clock: Array | None = None,
) -> Array:
    """Least time (...) until the supporting planes of an active row may have approached by distance (..., N) [m].

    within: (...) upper limit of the result [s].
    depths: (model, pairs) -> two additional distances: one that always counts, and one that counts until the interior
        points have moved half the way to each other [m].
    """
    if not model.topology.pairs or not near.gap.shape[-1]:
        return jnp.full(near.gap.shape[:-1], jnp.inf, near.gap.dtype)
    sides = freeze(shape_bounds(model, state, control, forces), still)
    table = table_of(sides)
    batch = jnp.broadcast_shapes(table.shape[:-2], near.pair.shape[:-1])
    table = jnp.broadcast_to(table, (*batch, *table.shape[-2:]))
    lead = len(batch)

    def first(x: Array, own: int) -> Array:
        """x (..., N, own axes) as (N, *batch, own axes)."""
        return jnp.moveaxis(jnp.broadcast_to(x, (*batch, *x.shape[x.ndim - own - 1 :])), lead, 0)

    active, pair = near.active, jnp.maximum(near.pair, 0)
    if within is not None:
        way = _travel_bound(sides, norm(Vec3.of(model.gravity[..., None, :])), within[..., None])
        ways = (gather_shapes(way, shape) for shape in shapes_of(model.topology, pair))
        active = active & ~(distance > sum(ways))
    numbers, vectors = (pair, distance, near.gap), (near.normal, near.point_a, near.point_b)
    rows = *jax.tree.map(lambda x: first(x, 0), numbers), tuple(first(x, 1) for x in vectors)
    order, real = compact(first(active, 0), near.pair.shape[-1])

    def safe_times(given: tuple[Model, Array], rows: tuple[Any, ...], real: Array) -> Array:
        model, table = given
        pair, far, gap, vectors = jax.tree.map(lambda x: jnp.moveaxis(x, 0, lead), rows)
        a, b = (jnp.take_along_axis(table, shape[..., None], -2) for shape in shapes_of(model.topology, pair))
        farther = None
        if depths is not None:
            ball, glance = depths(model, pair)
            far, farther = far + ball, far + glance
        there, g = jnp.moveaxis(real, 0, lead), Vec3.of(model.gravity[..., None, :])
        return jnp.moveaxis(_safe_times(a, b, g, there, vectors, (far, gap, farther)), -1, 0)

    time = map_indexed(safe_times, order, real, (model, table), rows)
    here = None if clock is None else clock_of_pairs(model.topology, clock, pair[order])
    time = least_of_clocks(jnp.where(real, time, jnp.inf), here, model, 0)
    return time if within is None else jnp.minimum(time, within)


def _travel_bound(side: ShapeBounds, g: Array, time: Array) -> Array:
    """Bound (..., ns) of the distance that any part of a shape moves in a time, with a margin for rounding [m]."""
    return (1 + 1e-6) * time * (norm(side.velocity) + side.slope + (g * side.falls + side.growth) * (time * 0.5))


@fence
def _safe_times(
    side_a: Array,
    side_b: Array,
    g: Vec3,
    active: Array,
    vectors: tuple[Array, Array, Array],
    distances: tuple[Array, Array, Array | None],
) -> Array:
    """Times (..., N) of rows.  side_a, side_b: (..., N, columns) bounds of their shapes, gathered from the table."""
    # values of inactive rows must stay out of derivatives too
    normal, *points = (Vec3.of(jnp.where(active[..., None], x, 0.0)) for x in vectors)
    distance, gap, farther = jax.tree.map(lambda x: jnp.where(active, x, 0.0), distances)
    a, b = (ShapeBounds.of_columns(x) for x in (side_a, side_b))
    time = _safe_time(a, b, normal, points, g, distance)
    if farther is not None:
        ends = (a.endless > 0) | (b.endless > 0)
        half = jnp.where(ends, farther, (jnp.maximum(gap, 0.0) + normal.dot(a.middle - b.middle)) / 2)
        apart = _safe_time(a, b, normal, points, g, jnp.maximum(half, 0.0), balls=False)
        time = jnp.maximum(time, jnp.minimum(_safe_time(a, b, normal, points, g, farther), apart))
    return time


def _safe_time(
    a: ShapeBounds, b: ShapeBounds, n: Vec3, points: Sequence[Vec3], g: Vec3, distance: Array, balls: bool = True
) -> Array:
    """Safe time of each row: the latest for all combinations of the two bounds of each side.

    balls: whether the second bound, the ball of radius `full`, is used.
    """
    convex = (a.concave == 0) & (b.concave == 0)
    v, fall = b.velocity - a.velocity, b.falls - a.falls
    # n points from B to A: B approaches along n, A against it
    speed = jnp.where(convex, n.dot(v), norm(v))
    pull = jnp.where(convex, n.dot(g) * fall, norm(g) * jnp.abs(fall))
    room = (a.full - (a.center - points[0]).dot(n), b.full - (points[1] - b.center).dot(n))
    ends = [convex & jnp.isfinite(side.full) for side in (a, b)]
    room = [jnp.maximum(jnp.where(end, r, 0.0), 0.0) for end, r in zip(ends, room, strict=True)]
    best: Array = jnp.zeros_like(distance)
    for end_a, end_b in itertools.product((False, True), repeat=2) if balls else [(False, False)]:
        slope = speed + (0.0 if end_a else a.slope) + (0.0 if end_b else b.slope)
        left = distance - (room[0] if end_a else 0.0) - (room[1] if end_b else 0.0)
        time = _first_root(jnp.maximum(left, 0.0), slope, pull + a.growth + b.growth)
        known = (left >= 0) & (ends[0] if end_a else True) & (ends[1] if end_b else True)
        best = jnp.maximum(best, jnp.where(known, time, 0.0))
    return best


def _first_root(d: Array, b: Array, a: Array) -> Array:
    """Least t >= 0 after which b t + a t^2/2 exceeds d >= 0; inf if it never does, 0 if b, a or d is NaN.

    Stable roots: 2 d/(b + s) for b >= 0, (s - b)/a for b < 0, with s = sqrt(b^2 + 2 a d). A discriminant that is
    negative within its rounding error counts as 0, on the safe side.
    """
    known, far = jnp.isfinite(b) & jnp.isfinite(a) & ~jnp.isnan(d), jnp.isposinf(d)
    b, a, d = jnp.where(known, b, 0.0), jnp.where(known, a, 0.0), jnp.where(known & ~far, d, 0.0)
    square = b * b + 2 * a * d
    reached = square >= -8 * jnp.finfo(square.dtype).eps * b * b
    s = jnp.maximum(safe_sqrt(square), jnp.where(a < 0, 0.0, jnp.abs(b)))  # b^2 may vanish before b does
    ahead, back, total = b >= 0, (b < 0) & (a > 0), b + s
    soon = safe_div(2 * d, total, otherwise=jnp.where(a > 0, 0.0, jnp.inf))
    late = safe_div(s - b, a, back, jnp.inf)
    time = jnp.where(ahead, jnp.where(reached, soon, jnp.inf), late)
    return jnp.where(known, jnp.where(far, jnp.inf, time), 0.0)


def _broadcast_batch(x: Array, y: Array) -> tuple[Array, Array]:
    """Return x (..., n) and y (..., m) with equal leading axes."""
    batch = jnp.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    return jnp.broadcast_to(x, (*batch, x.shape[-1])), jnp.broadcast_to(y, (*batch, y.shape[-1]))
