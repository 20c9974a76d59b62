"""Contact determination: Proximities and joint limits -> Contacts. The first stage of this floor.

See Holck (2.3.2; 4.3 for limits). A pair of shapes within the collision envelope is a contact, and so is a joint near
the end of its range. Its normal velocity decides whether it strikes or rests.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray

from ..collision.passage import free_links
from ..collision.proximities import Proximities, rows_at
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import compact
from ..engine.joints import JOINTS
from ..engine.model import Model
from ..engine.results import CONTACTS_FULL, OK, gravest
from ..engine.topology import Topology
from .contacts import Contacts, tangents
from .flat import drop_repeated
from .gather_scatter import gather

ENVELOPE = 10  # gap bands within which a contact may rest
SIGHT = {4: 1e2, 8: 1e5}  # gap bands within which a step looks for its resting contacts, by bytes per number
ON_A_FLOOR = {"sphere": 1, "ellipsoid": 1, "capsule": 2}  # contacts of a shape on a floor; 4 for other shapes
SLOW = 0.05  # rest speeds: a contact that opens faster separates, unless it is deeper than the gap band
IN_PLACE = 8  # contacts: up to this many are not compacted


class Phases(NamedTuple):
    """The phase of each contact, bools (C, *batch); at most one of the three is true.

    All are false for a contact in the envelope that closes fast but does not touch yet.
    """

    impact: Array
    resting: Array
    separating: Array


def determine(
    model: Model,
    q: Array,
    near: Proximities,
    *,
    max_contacts: int | None = None,
    envelope: float = ENVELOPE,
    limits: bool = True,
    reach: Array | None = None,
    still: Array | None = None,
) -> Contacts:
    """Return all contacts at the coordinates q (*batch, nq): gaps of at most `envelope` gap bands.

    near: result of `detect` at q, with a margin of at least the envelope.
    max_contacts: capacity; None: `default_capacity`. `.code` tells whether it was enough.
    limits: whether joints may have limits.
    reach: (N + n, *batch) larger gaps that count too, for each row of `near` and then for each joint [m, rad].
    still: (nv, *batch) bool, degrees of freedom whose limits do not count.
    """
    room = default_capacity(model.topology) if max_contacts is None else max_contacts
    far = envelope * model.gap_band
    far = far if reach is None else jnp.maximum(reach, far)
    n = near.pair.shape[-1]
    gather_pairs, of_joints = (far, far) if jnp.ndim(far) <= near.pair.ndim - 1 else (far[:n], far[n:])
    near, missing = _nearest_rows(near, gather_pairs, room)
    in_order = room < n and not limits and not any(model.topology.in_plane)
    contacts = drop_repeated(model, _contacts_of_pairs(model, near))
    if limits:
        stops = _contacts_of_limits(model, q)
        if still is not None:
            stops = stops._replace(active=stops.active & ~still[limited_dofs(model.topology)[0]])
        contacts = _concatenate(contacts, stops._replace(active=stops.active & (stops.gap <= of_joints)))
    contacts = contacts if len(contacts.gap) else _one_inactive_row(contacts)
    return _compact(contacts, min(room, len(contacts.gap)), missing, in_order)


def phases(model: Model, contacts: Contacts, u_n: Array) -> Phases:
    """Classify contacts by their gap and normal velocity u_n (C, *batch) [m/s, rad/s], negative if they approach."""
    impact = contacts.active & (contacts.gap <= model.gap_band) & (u_n < -model.rest_speed)
    resting = contacts.active & rests(model, contacts.gap, u_n)
    return Phases(impact, resting, contacts.active & ~resting & (u_n > 0))


def in_envelope(model: Model, contacts: Contacts) -> Array:
    """Return whether contacts are near enough to rest, (C, *batch)."""
    return contacts.active & (contacts.gap <= ENVELOPE * model.gap_band)


def touch_distance(model: Model, gap: Array, speed: Array, time: Array | float) -> Array:
    """Return the gap (N, *batch) [m] within which pairs that close with `speed` [m/s] may touch in a time (*batch) [s].

    It is twice the distance that they close, including a fall under gravity; or the distance of the fastest pair that
    may touch by then, since a body that it strikes may become as fast.
    """
    fall = jnp.linalg.norm(model.gravity, axis=-1) * time * (time * 0.5)
    way = speed * time + fall
    return jnp.maximum(2 * way, jnp.where(gap <= 2 * way, way, 0).max(0, initial=0))


def rests(model: Model, gap: Array, u_n: Array) -> Array:
    """Return whether a contact rests, by its gap and normal velocity, arrays of any shape."""
    near = gap <= ENVELOPE * model.gap_band
    leaves = jnp.where(gap < -model.gap_band, 1, SLOW) * model.rest_speed
    return near & (u_n >= -model.rest_speed) & (u_n <= leaves)


def would_bounce(model: Model, contacts: Contacts, u_n: Array) -> Array:
    """Return whether contacts (C, *batch) that close with u_n would leave too fast to rest.

    The others are stopped at the start of the next step, together, with the same result.
    """
    return -contacts.restitution * u_n > model.rest_speed


@functools.lru_cache(maxsize=256)
def default_capacity(topology: Topology, of_trees: float = 1.25) -> int:
    """Return the default capacity for contacts, a multiple of 8, at least 32 if there are free bodies.

    It is 8 for each free body, 4 if it has only spheres; for links of trees `of_trees` times the contacts of their
    shapes on a floor.
    """
    kinds: list[list[str]] = [[] for _ in range(topology.n_links)]
    for kind, link in zip(topology.shape_kinds, topology.shape_links, strict=True):
        if link >= 0:
            kinds[link].append(kind)
    flies = [free and joint != "fixed" for free, joint in zip(free_links(topology), topology.joints, strict=True)]
    room = 0.0
    for own, free in zip(kinds, flies, strict=True):
        if free and own:
            room += 4 if set(own) <= {"sphere"} else 8
        else:
            room += of_trees * sum(ON_A_FLOOR.get(kind, 4) for kind in own)
    return max(32 if any(flies) else 16, 8 * math.ceil(room / 8))


# -- shapes that touch ------------------------------------------------------------------------------


def _contacts_of_pairs(model: Model, near: Proximities) -> Contacts:
    topology, first = model.topology, lambda x: jnp.moveaxis(x, -1, 0)
    vector = lambda x: Vec3.of(jnp.moveaxis(x, -2, 0))  # noqa: E731
    pair, active = first(near.pair), first(near.active)
    only = lambda v, rest: jax.tree.map(lambda x, y: jnp.where(active, x, y), v, rest)  # noqa: E731
    shapes = jnp.asarray(np.array(topology.pairs, np.int32).reshape(-1, 2))
    links = jnp.asarray(np.array((*topology.shape_links, -1), np.int32))
    a, b = (shapes[pair, side] if len(shapes) else pair for side in (0, 1))
    # inactive rows get the origin and an upward normal
    point = only((vector(near.point_a) + vector(near.point_b)) * 0.5, Vec3(0.0, 0.0, 0.0))
    normal = only(vector(near.normal), Vec3(0.0, 0.0, 1.0))
    friction, restitution = (gather_pairs(x, pair) for x in (model.pair_friction, model.pair_restitution))
    return Contacts(
        pair, jnp.full_like(pair, -1), links[a], links[b], active, first(near.gap),
        tangents(normal), point, surface_velocity(model, pair, point), friction, restitution,
        near.code, jnp.zeros_like(near.code),
    )  # fmt: skip


def gather_pairs(numbers: Array, pair: Array) -> Array:
    """Return the entries of numbers (..., np) at the pairs (C, *batch), 0 for rows without a pair."""
    if not pair.size:
        return jnp.zeros(pair.shape, numbers.dtype)
    return jnp.where(pair < 0, 0, gather(jnp.moveaxis(numbers, -1, 0), jnp.maximum(pair, 0), 0))


def surface_velocity(model: Model, pair: Array, point: Vec3) -> Vec3:
    """Return the velocity of A's conveyor surface less B's at the points (C, *batch) [m/s].  pair: (C, *batch)."""
    still = jax.tree.map(jnp.zeros_like, point)
    if not model.topology.driven:
        return still
    a, b = (jnp.asarray(np.array(model.topology.pairs, np.int32)[:, side])[pair] for side in (0, 1))
    twist, origin = (jnp.moveaxis(x, -2, 0) for x in (model.shape_twist, model.shape_position))

    def at(shape: Array) -> Vec3:
        columns = [gather(x[..., k], shape, 0) for x, n in ((twist, 6), (origin, 3)) for k in range(n)]
        w, v, o = (Vec3(*columns[k : k + 3]) for k in (0, 3, 6))
        return v + w.cross(point - o)

    moving = at(a) - at(b)
    return jax.tree.map(lambda x: jnp.where(pair >= 0, x, 0), moving)


# -- joints at their limits ---------------------------------------------------------------------------


def _contacts_of_limits(model: Model, q: Array) -> Contacts:
    """Return one row for each degree of freedom that has a coordinate of its own: its nearer limit."""
    topology = model.topology
    dofs, coordinates, links = limited_dofs(topology)
    first = lambda x, index: jnp.moveaxis(x, -1, 0)[index]  # noqa: E731
    at = first(q, coordinates)
    batch = at.shape[1:]
    lower, upper, e = (
        jnp.broadcast_to(_align_axes(first(x, dofs), at), at.shape)
        for x in (model.lower, model.upper, model.limit_restitution)
    )
    below, above = at - lower, upper - at
    low = below <= above
    gap = jnp.where(low, below, above)
    none = jnp.zeros_like(at)
    rows = lambda index: jnp.broadcast_to(_column(index, at), at.shape)  # noqa: E731
    link_b = np.array([topology.parents[link] for link in links], np.int32)
    code = jnp.zeros(batch, jnp.int32)
    n = Vec3(none, none, jnp.where(low, 1, -1).astype(at.dtype))
    zero = Vec3(none, none, none)
    return Contacts(
        rows(np.full(len(dofs), -1, np.int32)), rows(dofs), rows(links), rows(link_b), jnp.isfinite(gap), gap,
        tangents(n), zero, zero, none, e, code, code,
    )  # fmt: skip


def limited_dofs(topology: Topology) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return the indices of the degrees of freedom that may have limits, of their coordinates and links, (n,) each."""
    rows = []
    for link, joint in enumerate(topology.joints):
        if JOINTS[joint].nq == JOINTS[joint].nv:
            start = (topology.v_start[link], topology.q_start[link])
            rows += [(start[0] + k, start[1] + k, link) for k in range(JOINTS[joint].nv)]
    columns = np.array(rows, np.int32).reshape(-1, 3).T
    return columns[0], columns[1], columns[2]


def _column(index: ArrayLike, like: Array) -> Array:
    return jnp.asarray(index).reshape(-1, *(1,) * (like.ndim - 1))


def _align_axes(x: Array, like: Array) -> Array:
    return x.reshape(len(x), *(1,) * (like.ndim - x.ndim), *x.shape[1:])


# -- all in one table -----------------------------------------------------------------------------------


def _concatenate(a: Contacts, b: Contacts) -> Contacts:
    batch = jnp.broadcast_shapes(a.gap.shape[1:], b.gap.shape[1:])

    def both(x: Array, y: Array) -> Array:
        x, y = (jnp.broadcast_to(_align_axes(z, jnp.zeros((1, *batch))), (len(z), *batch)) for z in (x, y))
        return jnp.concatenate([x, y.astype(x.dtype)])

    code, needed = (jnp.broadcast_to(x, batch) for x in (a.code, a.needed))
    return jax.tree.map(both, _rows_only(a), _rows_only(b))._replace(code=code, needed=needed)


def _one_inactive_row(contacts: Contacts) -> Contacts:
    """Return one inactive row for scenes without contacts: searches must not run over 0 rows."""
    one: Contacts = jax.tree.map(lambda x: jnp.zeros((1, *x.shape[1:]), x.dtype), _rows_only(contacts))
    no = one.pair - 1
    return one._replace(pair=no, dof=no, link_a=no, link_b=no, code=contacts.code, needed=contacts.needed)


def _nearest_rows(near: Proximities, far: Array, room: int) -> tuple[Proximities, Array]:
    """Return rows with a gap of at most `far` (N or 1, *batch) [m], the first `room` of them in front.

    Also return the number of the others (*batch).
    """
    active = jnp.moveaxis(near.active, -1, 0)
    active = active & (jnp.moveaxis(near.gap, -1, 0) <= far)
    if len(active) <= room:
        return near._replace(active=jnp.moveaxis(active, 0, -1)), jnp.zeros(active.shape[1:], jnp.int32)
    order, real = compact(active, room)
    missing = active.sum(0, dtype=jnp.int32) - real.sum(0, dtype=jnp.int32)
    return rows_at(near, order, real), missing


def _compact(contacts: Contacts, room: int, missing: Array, in_order: bool) -> Contacts:
    """Move the active contacts to the front, in at most `room` rows. Few contacts stay in place.

    missing: (*batch) number of contacts that were left out already.
    in_order: whether the active ones are in front already.
    """
    active = contacts.active
    count = active.sum(0, dtype=jnp.int32) + missing
    if room < len(active) or (len(active) > IN_PLACE and not in_order):
        order, real = compact(active, room)
        front = jax.tree.map(lambda x: gather(x, order, 0), _rows_only(contacts))
        contacts = front._replace(active=real, code=contacts.code)
    full = jnp.where(count > room, CONTACTS_FULL, OK)
    return contacts._replace(code=gravest(contacts.code, full), needed=jnp.where(count > room, count, 0))


def _rows_only(contacts: Contacts) -> Contacts:
    return contacts._replace(code=None, needed=None)  # type: ignore[arg-type]
