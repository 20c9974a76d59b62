"""How long pairs of shapes surely stay apart (`safe_step`, `unseen_step`), or not too deep (`longest_step`).

Derivation. Let n be the normal of a pair, from B to A, and h(u) a shape's support function. Convex A and B overlap
no deeper than the slab between their supporting planes says: for *any* unit n and any time

    gap(t) >= -h_A(-n) - h_B(n),   with equality now, when n is the direction of closest approach, apart or overlapping.

So gap(t) >= gap - f(t) as soon as f bounds how far both supporting planes come towards each other along the fixed n.
`link_motion` and `tree_speeds` bound that for each side, by terms c + b t + a t^2/2 that add up over the two sides:

- free body: b = v_com.n + swing w_max, a = g.n, where `swing` is what turning does to the support (`bounds.reach`; it
  vanishes for centred spheres, for which the bound is the very time of impact). Or, since no point is farther than
  `full` from the centre of mass: b = v_com.n, c = full - (the support now). The later of the two times holds.
- tree in free fall: b = v_com.n + C e, a = g.n + C growth, with C the speed of the link's points per root of energy e.
- any other tree: b = C e, a = C growth, in every direction.  Static shapes: nothing.

Gravity enters by difference: two bodies in free fall come together on straight lines, a body and a fixed link do not.

Heightfields and meshes are not convex: they may come near anywhere, not just along n. Their distance to a moving
shape still changes no faster than that shape moves (Hausdorff distance), so |v| takes the place of v.n, |g| of g.n.

The pair is safe until f(t) = d first. f is not monotone: for b < 0 the pair parts first, and a > 0 brings it back.

The bound of a tree is dear where a light link hangs on a heavy one, which might give it all its energy: ten times its
speed is nothing unusual. A run checks trees after a step, by where their links came to: `passage.py`.

What may go unseen (`longest_step`). A step ends where nothing has passed through anything if, along n, the inside of
A is still on A's side of the inside of B: then the deepest direction at its end is n, or one in which less overlaps,
and time control sees it. Two ways say so; the later time holds.

- the planes come nearer by the gap and the smaller of the two balls inside: nothing is ever deeper than that;
- a point inside of A and one inside of B (`middle`), which are points of the links, have come half the way that is
  between them and the planes, at most; and the planes come nearer by the gap and a share of the smaller body's size.

Thinness shortens the first alone. The second is short where two plates lie face to face, whose middles are as near as
they are thin; not where a card stands on another, or a coin rolls on its edge. Behind a plane or a heightfield there is
nothing, so that only the size counts there. What is given away is a glance: two bodies that touch and part again within
a step may have overlapped by that share of the smaller one's size, where they are thin, as they may by the radius of
the ball inside, where they are thick. On a plane the share is larger, for only turning brings up again what went in: a
free body that turns by an eighth of a radian dips in by about 1/300 of its size.

Contacts are outside: the bounds hold until an impulse acts, and resting contacts push all the time. Pairs that the
detector left out, because they are far apart, are bounded by `unseen_step`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.fence import fence
from ..engine.algebra.rotation import Quat
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import combined, in_front, of_the_chosen
from ..engine.dynamics.kinematics import place
from ..engine.dynamics.trees import trees_of
from ..engine.forest import Forest
from ..engine.model import Model
from ..engine.rows import take
from ..engine.state import State
from ..engine.topology import Topology
from .bounds import Reach, bounding_spheres, inradius, insides, norm, reach, root
from .proximities import Proximities
from .speeds.link_motion import link_motion, trees
from .speeds.tree_speeds import speed_at, times

CONCAVE = frozenset({"heightfield", "mesh"})
ENDLESS = frozenset({"plane", "heightfield"})  # solid below: nothing is behind them
GLANCE = 1 / 64  # of the smaller bounding ball's radius: how deep a touch may be that comes and goes within a step
FLAT = 1 / 8  # on a plane, where only turning brings up again what went in
ASSUMED = 2.0  # times the speed that a link has now whose energy is not known


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
    """Time (...) [s] for which no pair of `near` closes its gap and the allowance; inf if none ever can.

    allowance: [m], a number or (...), added to every gap. A negative sum counts as 0: touching pairs that come
    nearer have 0, those that part the time until they may be as near again. 0 also where nothing is known: a state
    that is not finite, a massless link's unbounded speed.
    control: (..., nv) the command to the motors meanwhile; None: their targets.  forces: (..., nv) that act meanwhile,
    at most: of any sign [N m, N].
    """
    extra = jnp.asarray(allowance, near.gap.dtype)[..., None]
    return _first_time(model, state, near, jnp.maximum(near.gap + extra, 0.0), control, forces)


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
    """Time (...) [s] after which no pair can have passed through another unseen; inf if none ever can.

    The travel along n is at most the gap (0 when overlapping) and what may go unseen, see the module.
    still: (..., ns) bool, shapes that do not move, whatever pulls at them.
    within: (...) [s] more is not asked for: pairs that are too far apart to come so near by then are not looked at.
    clock: (ns,) the number of each shape's clock, below T, or T if it is a static: a time (T,) for each clock is asked
        for. No pair goes by two of them.
    """
    distance = jnp.maximum(near.gap, 0.0)
    return _first_time(model, state, near, distance, control, forces, unseen_depths, still, within, clock)


@functools.partial(jax.jit, static_argnames="only")
def unseen_step(
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
    """Time (...) [s] for which no pair can touch that is farther apart than the sum of its reaches [m].

    In so much time no shape moves further than its reach, (..., ns) or a number, whatever way.  only: the shapes that
    are asked for.  still, clock: as for `longest_step`.
    """
    side = _moving(_sides(model, state, control, forces), still)
    g = norm(Vec3.of(model.gravity[..., None, :]))
    far = jnp.asarray(reach, side.slope.dtype)
    time = _first_root(*jnp.broadcast_arrays(far, norm(side.velocity) + side.slope, g * side.falls + side.growth))
    index = list(range(time.shape[-1])) if only is None else list(only)
    return least_of_clocks(take(time, index, -1), None if clock is None else clock[np.array(index, int)], model, -1)


def clock_of_pairs(topology: Topology, clock: Array, pair: Array) -> Array:
    """(N,) the clock of pairs (N,), T of those that go by none, or by two."""
    a, b = (clock[shape] for shape in shapes_of(topology, pair))
    none = trees_of(topology).n
    return jnp.where((a == b) | (b == none), a, jnp.where(a == none, b, none))


def least_of_clocks(time: Array, clock: Array | None, model: Model, axis: int) -> Array:
    """The least time along the axis, (...), or the least of each clock (T,).  clock: (n,) of each entry; None: all go
    by the same."""
    if clock is None:
        return time.min(axis, initial=jnp.inf)
    clocks = trees_of(model.topology).n
    return combined(jnp.minimum, time, clock, clocks, jnp.inf)


def unseen_depths(model: Model, pair: Array) -> tuple[Array, Array]:
    """Of pairs, rows (..., N) of `topology.pairs`, [m]: the radius of the smaller of the two balls inside, and how deep
    a glance may be."""
    a, b = shapes_of(model.topology, pair)

    def smaller(x: Array) -> Array:
        least = jnp.minimum(of_rows(x, a), of_rows(x, b))
        return jnp.where(jnp.isinf(least), 0.0, least)  # two static shapes

    kinds = model.topology.shape_kinds
    mesh, plane = (jnp.array([kind == name for kind in kinds]) for name in ("mesh", "plane"))
    share = jnp.where(mesh[a] | mesh[b], 0.0, jnp.where(plane[a] | plane[b], FLAT, GLANCE))
    return smaller(inradius(model)), smaller(bounding_spheres(model).radius) * share


def shapes_of(topology: Topology, pair: Array) -> tuple[Array, Array]:
    """Both shapes of pairs."""
    a, b = (np.array(side, np.int32) for side in zip(*topology.pairs, strict=True))
    return jnp.asarray(a)[pair], jnp.asarray(b)[pair]


def of_rows(x: Array, index: Array) -> Array:
    """x (..., n) at index (..., N)."""
    return jnp.take_along_axis(*_same_batch(x, index), axis=-1)


class _Side(NamedTuple):
    """One shape's bounds, components (..., ns) or gathered (..., N).

    velocity: common motion [m/s].  falls: 1 where gravity changes it.  slope [m/s], growth [m/s^2]: of the rest, in
    any direction.  center [m] and full [m]: a ball that the shape never leaves, moving with `velocity`; full is inf
    if there is none.  middle: a point inside the shape, in the world [m].  endless: 1 if it is a plane or a
    heightfield.  concave: 1 if the shape is not convex.
    """

    velocity: Vec3
    falls: Any
    slope: Any
    growth: Any
    center: Vec3
    full: Any
    middle: Vec3
    endless: Any
    concave: Any

    @staticmethod
    def of_columns(x: Array) -> _Side:
        """From an array (..., 15)."""
        return _Side(
            Vec3.of(x[..., :3]), x[..., 3], x[..., 4], x[..., 5], Vec3.of(x[..., 6:9]), x[..., 9],
            Vec3.of(x[..., 10:13]), x[..., 13], x[..., 14],
        )  # fmt: skip


def _first_time(
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
    """(...) least time until an active row's supporting planes may have come nearer by distance (..., N) [m]; `within`
    (...) [s], if that is less.

    depths: (model, pairs) -> by how much more they may, whatever happens, and while the middles of the two shapes do
    not come half the way to each other.
    """
    if not model.topology.pairs or not near.gap.shape[-1]:
        return jnp.full(near.gap.shape[:-1], jnp.inf, near.gap.dtype)
    sides = _moving(_sides(model, state, control, forces), still)
    table = _table(sides)
    batch = jnp.broadcast_shapes(table.shape[:-2], near.pair.shape[:-1])
    table = jnp.broadcast_to(table, (*batch, *table.shape[-2:]))
    lead = len(batch)

    def first(x: Array, own: int) -> Array:
        """x (..., N, own axes) as (N, *batch, own axes)."""
        return jnp.moveaxis(jnp.broadcast_to(x, (*batch, *x.shape[x.ndim - own - 1 :])), lead, 0)

    active, pair = near.active, jnp.maximum(near.pair, 0)
    if within is not None:
        way = _way(sides, norm(Vec3.of(model.gravity[..., None, :])), within[..., None])
        ways = (of_rows(way, shape) for shape in shapes_of(model.topology, pair))
        active = active & ~(distance > sum(ways))
    numbers, vectors = (pair, distance, near.gap), (near.normal, near.point_a, near.point_b)
    rows = *jax.tree.map(lambda x: first(x, 0), numbers), tuple(first(x, 1) for x in vectors)
    order, real = in_front(first(active, 0), near.pair.shape[-1])

    def lasting(given: tuple[Model, Array], rows: Any, real: Array) -> Array:
        model, table = given
        pair, far, gap, vectors = jax.tree.map(lambda x: jnp.moveaxis(x, 0, lead), rows)
        a, b = (jnp.take_along_axis(table, shape[..., None], -2) for shape in shapes_of(model.topology, pair))
        farther = None
        if depths is not None:
            ball, glance = depths(model, pair)
            far, farther = far + ball, far + glance
        there, g = jnp.moveaxis(real, 0, lead), Vec3.of(model.gravity[..., None, :])
        return jnp.moveaxis(_lasting(a, b, g, there, vectors, (far, gap, farther)), -1, 0)

    time = of_the_chosen(lasting, order, real, (model, table), rows)
    here = None if clock is None else clock_of_pairs(model.topology, clock, pair[order])
    time = least_of_clocks(jnp.where(real, time, jnp.inf), here, model, 0)
    return time if within is None else jnp.minimum(time, within)


def _way(side: _Side, g: Array, time: Array) -> Array:
    """How far (..., ns) any part of a shape goes in so much time, at most [m]; a little more, for rounding."""
    return (1 + 1e-6) * time * (norm(side.velocity) + side.slope + (g * side.falls + side.growth) * (time * 0.5))


@fence
def _lasting(side_a: Array, side_b: Array, g: Vec3, active: Array, vectors: Any, distances: Any) -> Array:
    """Of rows (..., N); sides (..., N, columns), gathered from the table."""
    # what stands in rows that are not there stays out of derivatives too
    normal, *points = (Vec3.of(jnp.where(active[..., None], x, 0.0)) for x in vectors)
    distance, gap, farther = jax.tree.map(lambda x: jnp.where(active, x, 0.0), distances)
    a, b = (_Side.of_columns(x) for x in (side_a, side_b))
    time = _row_time(a, b, normal, points, g, distance)
    if farther is not None:
        ends = (a.endless > 0) | (b.endless > 0)
        half = jnp.where(ends, farther, (jnp.maximum(gap, 0.0) + normal.dot(a.middle - b.middle)) / 2)
        apart = _row_time(a, b, normal, points, g, jnp.maximum(half, 0.0), balls=False)
        time = jnp.maximum(time, jnp.minimum(_row_time(a, b, normal, points, g, farther), apart))
    return time


def _moving(side: _Side, still: Array | None) -> _Side:
    """Bounds of shapes (..., ns), of which those that are still stay where they are."""
    if still is None:
        return side
    velocity, falls, slope, growth = jax.tree.map(lambda x: jnp.where(still, 0.0, x), side[:4])
    return side._replace(velocity=velocity, falls=falls, slope=slope, growth=growth)


def _table(side: _Side) -> Array:
    """(..., ns, columns) the bounds of every shape, as `_Side.of_columns` reads them."""
    columns = [*(getattr(side.velocity, k) for k in "xyz"), side.falls, side.slope, side.growth]
    columns += [*(getattr(side.center, k) for k in "xyz"), side.full]
    columns += [*(getattr(side.middle, k) for k in "xyz"), side.endless, side.concave]
    return jnp.stack(jnp.broadcast_arrays(*columns), -1)


def _sides(model: Model, state: State, *drive: Array | None) -> _Side:
    """Bounds of every shape, (..., ns)."""
    topology, motion = model.topology, link_motion(model, state, *drive)
    tree, _ = trees(topology)
    moves = np.array([i >= 0 and tree[i] >= 0 for i in topology.shape_links], bool)
    link = np.where(moves, topology.shape_links, 0).tolist()

    def of_link(x: Array) -> Array:
        return jnp.where(moves, take(x, link, -1), 0.0)

    def reach_about(point: Array) -> Reach:  # of static shapes, which may be endless, nothing is asked
        found = reach(model, take(point, link, -2))
        return Reach(jnp.where(moves, found.full, 0.0), jnp.where(moves, found.swing, 0.0))

    from_com, from_origin = reach_about(model.com), reach_about(jnp.zeros_like(model.com))
    mobility, turning, origin, spin, _ = motion.speeds
    own, hung = (of_link(mobility), of_link(turning)), (of_link(origin), of_link(spin))
    speed = speed_at(*own, *hung, from_com.swing, from_origin.swing)
    slope = times(speed, of_link(motion.energy_root))
    growth = times(speed, of_link(motion.growth))
    assumed = motion.assumed[link] & moves
    if assumed.any():
        now = of_link(motion.drift) + times(of_link(motion.turn), from_com.swing)
        slope, growth = jnp.where(assumed, ASSUMED * now, slope), jnp.where(assumed, 0, growth)
    falls = of_link(motion.falls)
    alone = motion.single[link] & (falls > 0)
    concave, endless = (np.array([k in kinds for k in topology.shape_kinds], bool) for kinds in (CONCAVE, ENDLESS))
    return _Side(
        velocity=jax.tree.map(of_link, motion.velocity),
        falls=falls,
        slope=jnp.where(alone, times(of_link(motion.spin), from_com.swing), slope),
        growth=growth,
        center=jax.tree.map(of_link, motion.center),
        full=jnp.where(alone & ~concave, from_com.full, jnp.inf),
        middle=middles(model, state.q),
        endless=jnp.where(endless, 1.0, 0.0),
        concave=jnp.where(concave, 1.0, 0.0),
    )


def middles(model: Model, q: Array) -> Vec3:
    """A point inside each shape, components (..., ns), in the world [m]."""
    held, forest = np.array(model.topology.shape_links, int) >= 0, Forest.of(model, q=q)
    inside = Quat.of_array(model.shape_quaternion).rotate(Vec3.of(insides(model))) + Vec3.of(model.shape_position)
    if not held.any():
        return inside
    poses = [placed.pose for placed in place(forest, model, q)]
    links = jax.tree.map(lambda *x: forest.join_links(x), *poses)
    link = np.where(held, model.topology.shape_links, 0).tolist()
    pose = jax.tree.map(lambda x: take(x, link, -1), links)
    return jax.tree.map(lambda x, y: jnp.where(held, x, y), pose.R @ inside + pose.p, inside)


def _row_time(
    a: _Side, b: _Side, n: Vec3, points: Sequence[Vec3], g: Vec3, distance: Array, balls: bool = True
) -> Array:
    """One row: the latest of the times that each side's two bounds allow, or the first of them without the balls."""
    convex = (a.concave == 0) & (b.concave == 0)
    v, fall = b.velocity - a.velocity, b.falls - a.falls
    # n points from B to A, so B comes nearer along n and A against it
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
    """Least t >= 0 after which b t + a t^2/2 exceeds d >= 0; inf if it never does, 0 if b, a or d is not a number.

    Stable roots: 2 d/(b + s) where b >= 0, (s - b)/a where b < 0, with s = sqrt(b^2 + 2 a d). A square that is
    negative within its rounding error counts as zero, on the safe side.
    """
    known, far = jnp.isfinite(b) & jnp.isfinite(a) & ~jnp.isnan(d), jnp.isposinf(d)
    b, a, d = jnp.where(known, b, 0.0), jnp.where(known, a, 0.0), jnp.where(known & ~far, d, 0.0)
    square = b * b + 2 * a * d
    reached = square >= -8 * jnp.finfo(square.dtype).eps * b * b
    s = jnp.maximum(root(square), jnp.where(a < 0, 0.0, jnp.abs(b)))  # b^2 may vanish before b does
    ahead, back, total = b >= 0, (b < 0) & (a > 0), b + s
    soon = jnp.where(total > 0, 2 * d / jnp.where(total > 0, total, 1.0), jnp.where(a > 0, 0.0, jnp.inf))
    late = jnp.where(back, (s - b) / jnp.where(back, a, 1.0), jnp.inf)
    time = jnp.where(ahead, jnp.where(reached, soon, jnp.inf), late)
    return jnp.where(known, jnp.where(far, jnp.inf, time), 0.0)


def _same_batch(x: Array, y: Array) -> tuple[Array, Array]:
    """(..., n) and (..., m) with equal leading axes."""
    batch = jnp.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    return jnp.broadcast_to(x, (*batch, x.shape[-1])), jnp.broadcast_to(y, (*batch, y.shape[-1]))
