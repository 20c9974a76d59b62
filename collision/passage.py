"""Whether links of trees may have passed through anything in a step, by where they were at its two ends.

What a link of a tree may do in a step is not well known before: the energy of the whole tree bounds its speed, and may
be a hundred times that of its lightest end. After the step it is known from how the link stands and moves at both ends.

Derivation. The step is taken for the motion that its ends define: the link's centre of mass on the cubic, and its
angular velocity on the quadratic, with the places, attitudes and velocities of both ends (Hermite). A scheme's own step
differs from that by terms of order 4 in its length h. Both lie within the hulls of their control points (Bernstein
form; Farin 2002, section 5.1), which are, with d the way from end to end and e the angle that is left of the turn when
the mean of both angular velocities is taken out,

    of the way:  0, u0 h/3, d - u1 h/3, d;      of |w|, at most:  |w0|, |w0 + w1|/2 + 3 e/h, |w1|.

Let A and B be a pair and n its normal at the start. Both supporting planes come nearer along the fixed n (see
`safe_step.py`) by at most

    f = max n.(b - a) + swing_a turn_a + swing_b turn_b,   with   turn = h (|w0| + |w0 + w1|/2 + |w1|)/3 + e,

a and b the control points of the two ways, and |b - a| in place of n.(b - a) where one of the two is not convex. The
step is sure if f is at most the pair's room: its gap and what may go unseen (`safe_step.py`, where also is why that is
enough). Nothing else is asked of n than that the gap is measured along it: bounding volumes will do.

Pairs that the detector left out, because they are farther apart than the sum of their reaches, have each its own.

What acts within the step, contacts too, is in the velocities at its ends. Free bodies are bounded before they move; in
pairs with links of trees, they turn by no more than `link_motion` bounds, too.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.fence import fence
from ..engine.algebra.rotation import Quat
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import in_front, up_to_the_last
from ..engine.dynamics.kinematics import Moving, Placed, move, place
from ..engine.forest import Forest
from ..engine.model import Model
from ..engine.rows import take
from ..engine.state import State
from ..engine.topology import Group, Topology
from .bounds import norm, reach, root
from .narrow import KERNELS
from .proximities import Proximities, rows_at
from .safe_step import CONCAVE, ENDLESS, gather_shapes, interior_points, shapes_of, undetected_depths
from .speeds.link_motion import BODY, body_motion, trees
from .speeds.tree_speeds import times

ROWS = max(kernel.rows for kernel in KERNELS.values())  # of a pair, at most


class Clearances(NamedTuple):
    """How far the pairs near each other at a state may come nearer unseen, (..., N).

    pair: row of `topology.pairs`.  normal: components [-].  room: [m], inf where there is nothing to check.
    reach: (..., ns) [m] of each shape: pairs farther apart than the sum of their two may have no row; None: all do.
    """

    pair: Array
    normal: Vec3
    room: Array
    reach: Array | None = None


@functools.cache
def free_links(topology: Topology) -> tuple[bool, ...]:
    """Whether each link is a free body, or does not move: what is bounded before a step."""
    tree, roots = trees(topology)
    size = np.bincount([k for k in tree if k >= 0], minlength=len(roots))
    alone = [k < 0 or (size[k] == 1 and joint == "floating") for k, joint in zip(tree, topology.joints, strict=True)]
    tied = {end for loop in topology.loops for end in (loop.a, loop.b)}
    return tuple(free and (tree[i] < 0 or i not in tied) for i, free in enumerate(alone))


@functools.cache
def checked_pairs(topology: Topology) -> np.ndarray:
    """(np,) whether each pair has a shape on a link that is not free."""
    free = (*free_links(topology), True)  # the world, link -1
    return np.array([not all(free[topology.shape_links[k]] for k in pair) for pair in topology.pairs], bool)


@functools.cache
def free_shapes(topology: Topology) -> tuple[int, ...]:
    """Shapes on free links."""
    free = free_links(topology)
    return tuple(k for k, link in enumerate(topology.shape_links) if link >= 0 and free[link])


def clearances(model: Model, q: Array, near: Proximities) -> Clearances:
    """near: what was found at the coordinates q (..., nq)."""
    topology = model.topology
    ends = np.array([k in ENDLESS for k in topology.shape_kinds], bool)[np.array(topology.pairs)].any(-1)
    here = near.active & jnp.asarray(checked_pairs(topology))[jnp.maximum(near.pair, 0)]
    room = ROWS * int(checked_pairs(topology).sum())
    if room < here.shape[-1]:
        near = rows_at(near, *in_front(jnp.moveaxis(here, -1, 0), room))
        here = near.active
    pair, normal, gap = jnp.maximum(near.pair, 0), near.normal, jnp.maximum(near.gap, 0.0)
    lead = pair.ndim - 1

    def unseen(given: tuple[Model, Vec3], rows: Any) -> Array:
        (model, inside), (pair, normal, gap) = given, jax.tree.map(lambda x: jnp.moveaxis(x, 0, lead), rows)
        (a, b), (ball, glance) = shapes_of(topology, pair), undetected_depths(model, pair)
        between = jax.tree.map(lambda x: gather_shapes(x, a) - gather_shapes(x, b), inside)
        half = jnp.maximum(gap + Vec3.of(normal).dot(between), 0.0) / 2
        glancing = jnp.where(jnp.asarray(ends)[pair], gap + glance, jnp.minimum(gap + glance, half))
        return jnp.moveaxis(jnp.maximum(gap + ball, glancing), -1, 0)

    rows = tuple(jnp.moveaxis(x, lead, 0) for x in (pair, normal, gap))
    room = up_to_the_last(unseen, jnp.moveaxis(here, -1, 0), (model, interior_points(model, q)), rows)
    return Clearances(pair, Vec3.of(normal), jnp.where(here, jnp.moveaxis(room, 0, -1), jnp.inf))


def clearance_used(
    model: Model,
    before: State,
    after: State,
    h: Array,
    clearances: Clearances,
    sifted: tuple[int, ...] = (),
) -> Array:
    """The largest share (...) of its room that any pair may have used in the step h (...) [s]: above 1, too much.

    before, after: the step's ends.  rooms: at the first.  sifted: shapes of which a pair may have no row.
    """
    kinds = model.topology.shape_kinds
    convex = np.array([not CONCAVE & {kinds[i], kinds[j]} for i, j in model.topology.pairs], bool)
    table = _table(model, _ways(model, before, after, h))
    batch = clearances.pair.shape[:-1]
    lead = len(batch)

    def used(table: Array, rows: Any) -> Array:
        pair, normal = jax.tree.map(lambda x: jnp.moveaxis(x, 0, lead), rows)
        a, b = (jnp.take_along_axis(table, k[..., None], -2) for k in shapes_of(model.topology, pair))
        return jnp.moveaxis(_used(a, b, normal, jnp.asarray(convex)[pair]), -1, 0)

    rows = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), (clearances.pair, clearances.normal))
    table = jnp.broadcast_to(table, (*batch, *table.shape[-2:]))
    checked = jnp.isfinite(jnp.moveaxis(clearances.room, -1, 0))
    nearer = jnp.moveaxis(up_to_the_last(used, checked, table, rows), 0, -1)
    share = jnp.where(nearer > 0, nearer, 0.0) / jnp.where(
        clearances.room > 0, clearances.room, jnp.finfo(nearer.dtype).tiny
    )
    share = share.max(-1, initial=0.0)
    free, links = free_links(model.topology), model.topology.shape_links
    unseen = [k for k in sifted if links[k] >= 0 and not free[links[k]]]
    if clearances.reach is None or not unseen:
        return share
    return jnp.maximum(share, (take(_farthest(table), unseen, -1) / take(clearances.reach, unseen, -1)).max(-1))


class _Ways(NamedTuple):
    """Of links, (..., nl): control points of the ways of their centres of mass [m], and by how much they turn [rad]."""

    points: tuple[Vec3, Vec3, Vec3]
    turn: Array


def _ways(model: Model, before: State, after: State, h: Array) -> _Ways:
    forest = Forest.of(model, q=before.q, v=before.v)
    starts, ends = (place(forest, model, x.q) for x in (before, after))
    first, last = (move(forest, placed, x.v) for placed, x in ((starts, before), (ends, after)))
    parts = [
        _way(x.pose, y.pose, u.V, w.V, forest.parameter(model, "com", group), h)
        for group, x, y, u, w in zip(forest.groups, starts, ends, first, last, strict=True)
    ]
    columns = [forest.join_links([part[k] for part in parts]) for k in range(10)]
    tumbling = [_tumbling(forest, model, *given, h) for given in zip(forest.groups, starts, first, strict=True)]
    columns[9] = jnp.maximum(columns[9], forest.join_links(tumbling))
    return _Ways((Vec3(*columns[:3]), Vec3(*columns[3:6]), Vec3(*columns[6:9])), columns[9])


@fence
def _way(start, end, V, W, com, h):
    """One group's links, as columns."""
    arms = [pose.R @ Vec3.of(com) for pose in (start, end)]
    d = end.p + arms[1] - start.p - arms[0]
    u0, u1 = (motion.v + motion.w.cross(arm) for motion, arm in zip((V, W), arms, strict=True))
    first, second = u0 * (h / 3), d - u1 * (h / 3)
    mean = (V.w + W.w) * 0.5
    apart = end.R + (Quat.exp(mean * h).matrix() @ start.R) * -1
    left = sum((row.dot(row) for row in apart.rows), start=0.0)  # 8 sin^2(e/2), and e/2 <= (pi/2) sin(e/2)
    turn = (norm(V.w) + norm(mean) + norm(W.w)) * (h / 3) + root(left / 8) * math.pi
    return (*first.xyz, *second.xyz, *d.xyz, turn)


def _tumbling(forest: Forest, model: Model, group: Group, start: Placed, first: Moving, h: Array) -> Any:
    """By how much the free bodies of a group turn at most [rad]: more than a quadratic says, if it is a radian or more;
    0 of other links."""
    free = np.array([group.joint == "floating" and free_links(forest.topology)[k] for k in group.links], bool)
    if not free.any():
        return 0.0
    spin = body_motion(start.pose, first.V, *(forest.parameter(model, name, group) for name in BODY))[7]
    return spin * h if free.all() else jnp.where(free.reshape(-1, *(1,) * forest.rank), spin * h, 0.0)


def _table(model: Model, ways: _Ways) -> Array:
    """(..., ns, 10) of each shape: its link's way, and how far turning may take its surface [m]."""
    links = model.topology.shape_links
    moves, link = np.array(links, int) >= 0, np.maximum(links, 0).tolist()
    swing = jnp.where(moves, reach(model, take(model.com, link, -2)).swing, 0.0)
    own = jax.tree.map(lambda x: jnp.where(moves, take(x, link, -1), 0.0), ways)
    columns = [x for point in own.points for x in point.xyz] + [times(own.turn, swing)]
    return jnp.stack(jnp.broadcast_arrays(*columns), -1)


@fence
def _used(a: Array, b: Array, n: Vec3, convex: Array) -> Array:
    """(..., N) [m] by how much supporting planes came nearer, from the rows (..., N, 10) of the table."""
    ways = [Vec3.of(b[..., 3 * k : 3 * k + 3]) - Vec3.of(a[..., 3 * k : 3 * k + 3]) for k in range(3)]
    nearer = [jnp.where(convex, n.dot(way), norm(way)) for way in ways]
    return jnp.maximum(functools.reduce(jnp.maximum, nearer), 0.0) + a[..., 9] + b[..., 9]


def _farthest(table: Array) -> Array:
    """(..., ns) [m] how far any point of a shape went, at most."""
    ways = [norm(Vec3.of(table[..., 3 * k : 3 * k + 3])) for k in range(3)]
    return functools.reduce(jnp.maximum, ways) + table[..., 9]
