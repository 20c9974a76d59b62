"""Predicted times of the next touch, at which time control aims. They may be wrong: it checks the end of each step.

The gap of every pair is extrapolated as a parabola, from its present rate and the present accelerations. This is exact
for spheres that fly towards planes.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..collision.bounds import norm, reach
from ..collision.proximities import Proximities
from ..collision.safe_step import clock_of_pairs, least_of_clocks
from ..engine.algebra.fence import fence
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.algebra.spatial import Motion
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import compact, map_indexed
from ..engine.dynamics.kinematics import propagate_poses, propagate_velocities
from ..engine.forest import Forest
from ..engine.model import Model
from ..engine.rows import take
from .contacts import Contacts
from .determine import limited_dofs, phases, rests, touch_distance
from .gather_scatter import gather

SLOW = 4.0  # rest speeds: the end of a slower slide is not predicted; a step that one turns in is tried again


def touch_time(
    model: Model,
    q: Array,
    v: Array,
    dv: Array,
    near: Proximities,
    limits: bool = True,
    within: Array | None = None,
    clock: Array | None = None,
) -> Array:
    """Return the time (*batch) [s] until the first pair of `near`, or joint limit, is expected to touch, or inf.

    Contacts that rest do not count.

    q: (*batch, nq) coordinates.
    v: (*batch, nv) velocities.
    dv: (*batch, nv) accelerations.
    limits: whether joints may have limits.
    within: () or (*batch) later touches of pairs need not be found [s].
    clock: (ns,) clock of each shape, see `longest_step`; the result is then (T,), and limits do not count.
    """
    time = jnp.full(q.shape[:-1], jnp.inf, q.dtype)
    if near.pair.shape[-1]:
        gap, *rates, order = _pairs(model, q, v, dv, near, within)
        own = None if clock is None else clock_of_pairs(model.topology, clock, jnp.maximum(near.pair, 0)[order])
        time = least_of_clocks(_times(model, gap, *rates), own, model, 0)
    if limits:
        for gap_and_rates in _limits(model, q, v, dv):
            time = jnp.minimum(time, _times(model, *gap_and_rates).min(0, initial=jnp.inf))
    return time


def touch_distances(model: Model, q: Array, v: Array, near: Proximities, within: Array, limits: bool = True) -> Array:
    """Return the gaps (N + n, *batch) [m, rad] within which rows of `near`, and then joint limits, may touch in a time.

    within: (*batch) the time [s].
    """
    ways = [jnp.zeros((0, *q.shape[:-1]), q.dtype)]
    if near.pair.shape[-1]:
        gap, rate, *_ = _pairs(model, q, v, jnp.zeros_like(v), near)
        ways.append(touch_distance(model, gap, jnp.where(jnp.isfinite(gap), jnp.maximum(-rate, 0), 0), within))
    if limits:
        ways.append(jnp.abs(jnp.moveaxis(v, -1, 0)[limited_dofs(model.topology)[0]]) * (2 * within))
    return jnp.concatenate(ways)


def slide_time(model: Model, contacts: Contacts, u: Vec3, rate: Vec3) -> Array:
    """Return the time (C, *batch) [s] until each contact that slides is expected to stick, or inf; differentiable.

    u, rate: relative velocities and their rates, in the contact frames [m/s, m/s^2].
    """
    square = u.x * u.x + u.y * u.y
    fast = square > (SLOW * model.rest_speed) ** 2
    slides = phases(model, contacts, u.z).resting & ~contacts.is_limit & fast
    slower = -(u.x * rate.x + u.y * rate.y)  # rate at which slip decreases, times the slip
    ends = slides & (slower > 0)
    return safe_div(square, slower, ends, jnp.inf)


def return_time(model: Model, contacts: Contacts, u_n: Array, rate: Array) -> Array:
    """Return the time (C, *batch) [s] until each contact that opens is expected to touch again, or inf.

    A body that rolls over a flat side has contacts of this kind.
    u_n, rate: first and second rate of the gap, including the migration of the contact point [m/s, m/s^2].
    """
    opens = contacts.active & ~phases(model, contacts, u_n).resting
    return jnp.where(opens & (u_n > 0), first_time(contacts.gap, u_n, rate), jnp.inf)


def _pairs(
    model: Model, q: Array, v: Array, dv: Array, near: Proximities, within: Array | None = None
) -> tuple[Array, Array, Array, Array]:
    """Return the gap, its first and second rate, and the index of the row, (N, *batch).

    within: pairs that cannot close their gap by then have gap inf [s].
    """
    topology, forest = model.topology, Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    origin = forest.by_link([x.pose.p for x in poses])
    first = [forest.by_link([x.V for x in propagate_velocities(forest, poses, rates)]) for rates in (v, dv)]
    shapes = np.array(topology.pairs, np.int32).reshape(-1, 2)
    links = np.array((*topology.shape_links, -1), np.int32)[shapes]
    active, pair, gap = (jnp.moveaxis(x, -1, 0) for x in (near.active, near.pair, near.gap))
    if within is None:
        order = jnp.broadcast_to(jnp.arange(len(active)).reshape(-1, *(1,) * (active.ndim - 1)), active.shape)
        real = active
    else:
        way = _travel_estimates(model, first, within)
        ways = sum(gather(way, jnp.asarray(shapes)[pair, k], 0) for k in (0, 1))
        order, real = compact(active & ~(gap > ways), len(active))
    vectors = tuple(Vec3.of(jnp.moveaxis(x, -2, 0)) for x in (near.normal, near.point_a, near.point_b))

    def rates_of(
        given: tuple[Vec3, list[Motion]], rows: tuple[Array, tuple[Vec3, ...]], there: Array
    ) -> tuple[Array, Array]:
        pair, (n, *points) = rows
        sides = []
        for k, point in enumerate(points):
            link = jnp.asarray(links)[pair, k]
            moves = (link >= 0) & there
            p, twists = jax.tree.map(lambda x, link=link: gather(x, jnp.maximum(link, 0), 0), given)
            at = (twist.at(point - p).v for twist in twists)
            sides.append([Vec3(*(jnp.where(moves, c, 0) for c in x.xyz)) for x in at])
        (u_a, a_a), (u_b, a_b) = sides
        return _project_on_normal(n, u_a - u_b, a_a - a_b)

    rates = map_indexed(rates_of, order, real, (origin, first), (pair, vectors))
    return jnp.where(real, gather(gap, order, 0), jnp.inf), *rates, order


def _travel_estimates(model: Model, rates: Sequence[Motion], time: Array) -> Array:
    """Return the distance (ns, *batch) that any part of a shape, or of its bounding volume, is expected to move [m].

    rates: velocities of the links (n, *batch), and their rates.
    """
    links = np.array(model.topology.shape_links, int)
    size = 2 * jnp.moveaxis(reach(model, jnp.zeros_like(model.shape_position)).full, -1, 0)
    size = size.reshape(len(size), *(1,) * (time.ndim + 1 - size.ndim), *size.shape[1:])

    def speed(x: Motion) -> Array:
        w, v = (take(norm(part), np.maximum(links, 0).tolist()) for part in (x.w, x.v))
        moves = (links >= 0).reshape(-1, *(1,) * (v.ndim - 1))
        return jnp.where(moves, v + w * jnp.where(moves, size, 0), 0)

    now, change = (speed(x) for x in rates)
    return (1 + 1e-6) * time * (now + change * (time * 0.5))


@fence
def _project_on_normal(n: Vec3, u: Vec3, a: Vec3) -> tuple[Array, Array]:
    return n.dot(u), n.dot(a)


def _limits(model: Model, q: Array, v: Array, dv: Array) -> list[tuple[Array, Array, Array]]:
    dofs, coordinates, _ = limited_dofs(model.topology)
    first = lambda x, index: jnp.moveaxis(x, -1, 0)[index]  # noqa: E731
    at, u, a = first(q, coordinates), first(v, dofs), first(dv, dofs)
    wide = lambda x: x.reshape(len(x), *(1,) * (at.ndim - x.ndim), *x.shape[1:])  # noqa: E731
    lower, upper = (wide(first(x, dofs)) for x in (model.lower, model.upper))
    return [(at - lower, u, a), (upper - at, -u, -a)]


def _times(model: Model, g: Array, u: Array, a: Array) -> Array:
    return jnp.where(rests(model, g, u), jnp.inf, first_time(g, u, a))


def first_time(g: Array, u: Array, a: Array) -> Array:
    """Return the least t > 0 with g + u t + a t^2/2 = 0, or inf; a negative g counts as 0."""
    far = ~jnp.isfinite(g)
    g = jnp.where(far, 0, jnp.maximum(g, 0))
    square = u * u - 2 * a * g
    s = safe_sqrt(square)
    closing = (u < 0) & (square >= 0)
    returns = (u >= 0) & (a < 0)
    late = safe_div(u + s, -a, returns & (u + s > 0), jnp.inf)
    time = safe_div(2 * g, s - u, closing, late)
    return jnp.where(far | (time <= 0), jnp.inf, time)
