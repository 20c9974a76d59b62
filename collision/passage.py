"""Clearances: whether links of trees may have passed through another shape in a step, from their motion at its ends.

The motion of a link of a tree in a step has no good bound in advance: only the energy of the whole tree bounds its
speed, and the bound may be a hundred times the speed of its lightest link. After the step, poses and velocities at
both ends are known.

Derivation. The motion within the step is interpolated (Hermite): the link's centre of mass on the cubic, and its
angular velocity on the quadratic, with the poses and velocities of both ends. The scheme's own step differs from this
by terms of order 4 in its length h. Both curves lie within the convex hulls of their control points (Bernstein form;
Farin 2002, section 5.1). With d the displacement from end to end, and e the angle of the rotation that remains after
that by the mean angular velocity, these are

    of the path:  0, u0 h/3, d - u1 h/3, d;      of |w|, at most:  |w0|, |w0 + w1|/2 + 3 e/h, |w1|.

Let A and B be a pair and n its normal at the start. Its supporting planes approach along the fixed n (see
`safe_step.py`) by at most

    f = max n.(b - a) + swing_a turn_a + swing_b turn_b,   with   turn = h (|w0| + |w0 + w1|/2 + |w1|)/3 + e,

with a and b the control points of the two paths, and |b - a| instead of n.(b - a) if one of the two is not convex. The
step is safe if f is at most the pair's clearance: its gap plus the overlap that may go undetected (`safe_step.py`,
which also says why this is enough). n may be any direction along which the gap is measured or bounding volumes
are separated.

Pairs that the detector left out, because they are farther apart than the sum of their reaches, are checked by their
reaches.

Forces within the step, also those of contacts, show in the velocities at its ends. Free bodies are bounded before they
move; in pairs with links of trees, their rotation is bounded by `link_motion` as well.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.fence import fence
from ..engine.algebra.rotation import Quat
from ..engine.algebra.safe import safe_sqrt
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import compact, map_to_last
from ..engine.dynamics.kinematics import LinkPoses, LinkVelocities, propagate_poses, propagate_velocities
from ..engine.forest import Forest
from ..engine.model import Model
from ..engine.rows import take
from ..engine.state import State
from ..engine.topology import Group, Topology
from .bounds import norm, reach
from .narrow import KERNELS
from .proximities import Proximities, rows_at
from .safe_step import gather_shapes, shapes_of, undetected_depths
from .speeds.link_motion import BODY, body_motion, trees
from .speeds.shape_bounds import CONCAVE, ENDLESS, interior_points
from .speeds.tree_speeds import times

ROWS = max(kernel.rows for kernel in KERNELS.values())  # per pair, at most


class Clearances(NamedTuple):
    """Clearances of near pairs, by which the shapes may approach before they must be checked, (..., N).

    pair: row of `topology.pairs`.
    normal: components, unit.
    room: clearance, inf for pairs that need no check [m].
    reach: (..., ns) reach of each shape; pairs farther apart than the sum of two have no row; None: all have [m].
    """

    pair: Array
    normal: Vec3
    room: Array
    reach: Array | None = None


@functools.cache
def free_links(topology: Topology) -> tuple[bool, ...]:
    """Return whether each link is a free body, in space or in a plane, or does not move, so that its motion is bounded
    before a step."""
    tree, roots = trees(topology)
    size = np.bincount([k for k in tree if k >= 0], minlength=len(roots))
    loose = [joint == "floating" or flat for joint, flat in zip(topology.joints, topology.in_plane, strict=True)]
    alone = [k < 0 or (size[k] == 1 and free) for k, free in zip(tree, loose, strict=True)]
    tied = {end for loop in topology.loops for end in (loop.a, loop.b)}
    return tuple(free and (tree[i] < 0 or i not in tied) for i, free in enumerate(alone))


@functools.cache
def checked_pairs(topology: Topology) -> np.ndarray:
    """Return whether each pair has a shape on a link that is not free, (np,)."""
    free = (*free_links(topology), True)  # the world, link -1
    return np.array([not all(free[topology.shape_links[k]] for k in pair) for pair in topology.pairs], bool)


@functools.cache
def free_shapes(topology: Topology) -> tuple[int, ...]:
    """Shapes on free links."""
    free = free_links(topology)
    return tuple(k for k, link in enumerate(topology.shape_links) if link >= 0 and free[link])


@jax.jit  # traced once for all its calls
def clearances(model: Model, q: Array, near: Proximities) -> Clearances:
    """The clearances at the coordinates q (..., nq).  near: pairs that were detected there."""
    topology = model.topology
    ends = np.array([k in ENDLESS for k in topology.shape_kinds], bool)[np.array(topology.pairs)].any(-1)
    here = near.active & jnp.asarray(checked_pairs(topology))[jnp.maximum(near.pair, 0)]
    room = ROWS * int(checked_pairs(topology).sum())
    if room < here.shape[-1]:
        near = rows_at(near, *compact(jnp.moveaxis(here, -1, 0), room))
        here = near.active
    pair, normal, gap = jnp.maximum(near.pair, 0), near.normal, jnp.maximum(near.gap, 0.0)
    lead = pair.ndim - 1

    def unseen(given: tuple[Model, Vec3], rows: tuple[Array, ...]) -> Array:
        (model, inside), (pair, normal, gap) = given, jax.tree.map(lambda x: jnp.moveaxis(x, 0, lead), rows)
        (a, b), (ball, glance) = shapes_of(topology, pair), undetected_depths(model, pair)
        between = jax.tree.map(lambda x: gather_shapes(x, a) - gather_shapes(x, b), inside)
        half = jnp.maximum(gap + Vec3.of(normal).dot(between), 0.0) / 2
        glancing = jnp.where(jnp.asarray(ends)[pair], gap + glance, jnp.minimum(gap + glance, half))
        return jnp.moveaxis(jnp.maximum(gap + ball, glancing), -1, 0)

    rows = tuple(jnp.moveaxis(x, lead, 0) for x in (pair, normal, gap))
    room = map_to_last(unseen, jnp.moveaxis(here, -1, 0), (model, interior_points(model, q)), rows)
    return Clearances(pair, Vec3.of(normal), jnp.where(here, jnp.moveaxis(room, 0, -1), jnp.inf))


def clearance_used(
    model: Model,
    before: State,
    after: State,
    h: Array,
    clearances: Clearances,
    sifted: tuple[int, ...] = (),
) -> Array:
    """The largest part (...) of its clearance that any pair may have used in a step; above 1 shapes may have passed.

    before, after: states at the ends of the step.
    h: (...) its length [s].
    clearances: at its start.
    sifted: shapes that have pairs without a row.
    """
    kinds = model.topology.shape_kinds
    convex = np.array([not CONCAVE & {kinds[i], kinds[j]} for i, j in model.topology.pairs], bool)
    table = _table(model, _ways(model, before, after, h))
    batch = clearances.pair.shape[:-1]
    lead = len(batch)

    def row_approach(table: Array, rows: tuple[Array, Array]) -> Array:
        pair, normal = jax.tree.map(lambda x: jnp.moveaxis(x, 0, lead), rows)
        a, b = (jnp.take_along_axis(table, k[..., None], -2) for k in shapes_of(model.topology, pair))
        return jnp.moveaxis(_approach(a, b, normal, jnp.asarray(convex)[pair]), -1, 0)

    rows = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), (clearances.pair, clearances.normal))
    table = jnp.broadcast_to(table, (*batch, *table.shape[-2:]))
    checked = jnp.isfinite(jnp.moveaxis(clearances.room, -1, 0))
    nearer = jnp.moveaxis(map_to_last(row_approach, checked, table, rows), 0, -1)
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
    """Bounds of the motion of links in a step, (..., nl).

    points: control points of the paths of their centres of mass [m].
    rotation: largest angle of rotation [rad].
    """

    points: tuple[Vec3, Vec3, Vec3]
    rotation: Array


def _ways(model: Model, before: State, after: State, h: Array) -> _Ways:
    forest = Forest.of(model, q=before.q, v=before.v)
    starts, ends = (propagate_poses(forest, model, x.q) for x in (before, after))
    first, last = (propagate_velocities(forest, poses, x.v) for poses, x in ((starts, before), (ends, after)))
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
    """The bounds of one group of links, as columns."""
    arms = [pose.R @ Vec3.of(com) for pose in (start, end)]
    d = end.p + arms[1] - start.p - arms[0]
    u0, u1 = (motion.v + motion.w.cross(arm) for motion, arm in zip((V, W), arms, strict=True))
    first, second = u0 * (h / 3), d - u1 * (h / 3)
    mean = (V.w + W.w) * 0.5
    apart = end.R + (Quat.exp(mean * h).matrix() @ start.R) * -1
    left = sum((row.dot(row) for row in apart.rows), start=0.0)  # 8 sin^2(e/2), and e/2 <= (pi/2) sin(e/2)
    rotation = (norm(V.w) + norm(mean) + norm(W.w)) * (h / 3) + safe_sqrt(left / 8) * math.pi
    return (*first.xyz, *second.xyz, *d.xyz, rotation)


def _tumbling(
    forest: Forest, model: Model, group: Group, start: LinkPoses, first: LinkVelocities, h: Array
) -> Array | float:
    """Largest rotation of the free bodies of a group [rad], 0 for other links. A quadratic does not bound rotations by
    a radian or more."""
    free = np.array([free_links(forest.topology)[k] for k in group.links], bool) & (group.joint != "fixed")
    if not free.any():
        return 0.0
    spin = body_motion(start.pose, first.V, *(forest.parameter(model, name, group) for name in BODY))[7]
    return spin * h if free.all() else jnp.where(free.reshape(-1, *(1,) * forest.rank), spin * h, 0.0)


def _table(model: Model, ways: _Ways) -> Array:
    """Path of the link of each shape, and the largest displacement of its surface by rotation [m], (..., ns, 10)."""
    links = model.topology.shape_links
    moves, link = np.array(links, int) >= 0, np.maximum(links, 0).tolist()
    swing = jnp.where(moves, reach(model, take(model.com, link, -2)).swing, 0.0)
    own = jax.tree.map(lambda x: jnp.where(moves, take(x, link, -1), 0.0), ways)
    columns = [x for point in own.points for x in point.xyz] + [times(own.rotation, swing)]
    return jnp.stack(jnp.broadcast_arrays(*columns), -1)


@fence
def _approach(a: Array, b: Array, n: Vec3, convex: Array) -> Array:
    """Approach of supporting planes (..., N) [m], from rows (..., N, 10) of the table."""
    ways = [Vec3.of(b[..., 3 * k : 3 * k + 3]) - Vec3.of(a[..., 3 * k : 3 * k + 3]) for k in range(3)]
    nearer = [jnp.where(convex, n.dot(way), norm(way)) for way in ways]
    return jnp.maximum(functools.reduce(jnp.maximum, nearer), 0.0) + a[..., 9] + b[..., 9]


def _farthest(table: Array) -> Array:
    """Largest displacement of any point of a shape, (..., ns) [m]."""
    ways = [norm(Vec3.of(table[..., 3 * k : 3 * k + 3])) for k in range(3)]
    return functools.reduce(jnp.maximum, ways) + table[..., 9]
