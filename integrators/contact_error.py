"""Errors of the contacts that a step carried, at the end of the step.

A contact that has an impulse over a whole step ends it with the target velocity of `contact/resting/solve.py`, up to
the error of the predicted contact kinematics, which is of order 2 in the step. A rolling wheel would therefore strike
the ground, or leave it, with a speed and a gap that are pure discretization error. Both are measured at the end of the
step, and the end is corrected (`correction.py`). The correction takes the energy p.u/2, of order 4 in the step. If this
exceeds `ROUGH` squared times the kinetic energy of the touching trees, a shorter step is taken. The ratio also sets the
length of the next step.

Contacts at both ends of a step are the same if they belong to the same pair of shapes, or the same joint limit, and are
nearest to each other after the predicted migration. An error that is larger than a step can explain means a new
contact, which is left to time control. A step can explain errors of the contact's velocity and of the rotation of its
normal, and errors because forces change within the step (stiff springs), while impulses are computed for the forces at
its start.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..contact.contact_jacobian import ContactJacobian, gather_trees, relative_velocity
from ..contact.contacts import Contacts
from ..contact.determine import ENVELOPE
from ..contact.gather_scatter import gather
from ..contact.resting.solve import FULL
from ..contact.resting.targets import target_velocity
from ..engine.algebra.bounded import loop
from ..engine.algebra.fence import lane_programs
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import in_front, segment_reduce
from ..engine.dynamics.energy import kinetic_of_trees
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from .lanes import Lane
from .proposal import Proposal
from .rules import Rules
from .schemes import FIRST_ORDER

A_PAIR = 4  # most contacts of a pair of shapes
NEAR = 5.0  # gap bands: error of a gap that needs no correction
STILL = 0.05  # rest speeds: error of a velocity that needs no correction
ROUGH = 0.001  # squared: relative energy error above which a shorter step is taken
ROUGHER = 0.01  # the same for schemes of order 1, whose own error is larger
QUIET = 0.2  # rest speeds: a smaller velocity error never shortens a step
KNOWN = 1 / 4  # part of ROUGH, as a velocity: with a smaller error the energy is not computed
LOST = 16.0  # times ROUGH squared: energy error of a missing contact
SPARE = 1e-3  # rest speeds: friction that changes a velocity by less is within the accuracy of impulses
JUMP, EVEN = 0.5, 2e-3  # largest error of a normal: part of its expected rotation, and additional angle [rad]
ASTRAY = 0.25  # part of the expected migration: farthest distance of a partner from its place, if another is nearer
SURELY = 10.0  # times the largest expected gap error: the distance within which contacts are detected
SAME = 0.05  # part of the velocities that meet: with a larger error it is another contact
CHANGED = 0.5  # part of a contact's impulse that forces that change within the step can explain, at most
ALIKE = 0.5  # part of the speed at which a contact closes: largest difference for a contact that has returned


class ContactErrors(NamedTuple):
    """Errors of the contacts at the end of a step; 0 for contacts that it did not carry.

    u: (C, *batch) error of the velocity [m/s].
    gap: (C, *batch) error of the gap [m].
    normal, tangent: (C, *batch) whether the step constrained the contact in these directions.
    lifts: (C, *batch) contacts that touched, opened without an impulse, and sank in: only their gap has an error.
    most: (C, *batch) largest error of u.z that the step can explain [m/s].
    much: whether the errors need a correction, for each clock.
    rough: energy error relative to the allowed one, for each clock; above 1 a shorter step should be taken.
    partner: (C, *batch) the row of each contact at the start, and whether the step carried it.
    """

    u: Vec3
    gap: Array
    normal: Array
    tangent: Array
    lifts: Array
    most: Array
    much: Array
    rough: Array
    partner: tuple[Array, Array]


class ExpectedContacts(NamedTuple):
    """Expected motion of the contacts that a step began with, (C, *batch).

    carried: whether the contact had an impulse over the whole step.
    freed: whether it touched and had no impulse.
    gap: gap at the start [m].
    u_n: normal velocity at the start [m/s].
    target: normal velocity at the end [m/s].
    sticks: whether it sticks.
    speed: scale of the velocities that meet there, sum of |J| |v| [m/s].
    most: largest error of its velocity at the end that the step can explain [m/s].
    """

    carried: Array
    freed: Array
    gap: Array
    u_n: Array
    target: Array
    sticks: Array
    speed: Array
    most: Array


def contact_errors(
    rules: Rules,
    model: Model,
    lane: Lane,
    tried: Proposal,
    expected: ExpectedContacts,
    contacts: Contacts,
    rows: ContactJacobian,
    u: Vec3,
) -> ContactErrors:
    """Return the errors of the contacts at the end of a step.

    expected: expected motion of the step's contacts.
    contacts, rows: contacts at its end, and their Jacobian.
    u: (C, *batch) relative velocities at its end, in the contact frames [m/s].
    """
    may = ROUGHER if rules.scheme in FIRST_ORDER else ROUGH
    ready, clocks, before = lane.ready, lane.clocks, lane.ready.contacts
    h, h_there = clocks.of_contacts(ready.rows.tree, tried.h), clocks.of_contacts(rows.tree, tried.h)
    path, carried = ready.kinematics.point * h, expected.carried
    inside = contacts.active & (contacts.gap < -NEAR * model.gap_band)
    touched = carried | (expected.freed & inside.any(0))
    near = path.dot(path) * ASTRAY**2 + (1000 * model.gap_band) ** 2
    seen = contacts if contacts.inner is None else contacts._replace(active=contacts.active | contacts.inner)
    there, was, matched = _match_contacts(model, before, seen, before.point + path, near, touched, carried)
    matched = matched & contacts.active
    expected, partner = jax.tree.map(lambda x: gather(x, was, 0), expected), (was, matched)
    # a contact that has sunk in moves out at its target velocity, and no deeper; otherwise the gap should be 0
    sunk = expected.gap < -ENVELOPE * model.gap_band
    way_out = jnp.maximum((expected.u_n + expected.target) * (h_there * 0.5), 0)
    gap = contacts.gap - jnp.where(sunk, expected.gap + way_out, 0)
    u_n = u.z - expected.target
    matched = matched & (jnp.abs(gap) <= expected.most * h_there + NEAR * model.gap_band)
    # schemes of order 1 first move a contact that leaves along a curve into the ground
    lifts = matched & ~expected.carried & inside & (gap < -NEAR * model.gap_band) & (u.z > 0)
    matched = matched & expected.carried & (jnp.abs(u_n) <= expected.most)
    sticks = matched & expected.sticks
    u = Vec3(jnp.where(sticks, u.x, 0), jnp.where(sticks, u.y, 0), jnp.where(matched, u_n, 0))
    apart = jnp.abs(gap) > jnp.maximum(NEAR * model.gap_band, jnp.where(sunk, 0, jnp.abs(expected.gap)))
    much = matched & (apart | (jnp.abs(u_n) > STILL * model.rest_speed))
    least = QUIET * model.rest_speed
    large, fast = (u.dot(u) > jnp.maximum(part * may * expected.speed, least) ** 2 for part in (KNOWN, 1))
    turned = before.frame.rows[2] + ready.kinematics.normal * h, ready.kinematics.normal * h
    cost = _energy_error(model, tried.state, contacts, rows, (was, *turned), u, large, may)
    rough = clocks.most(rows.tree, jnp.where(fast, cost, jnp.minimum(cost, 1)))
    rough = jnp.maximum(rough, clocks.most(ready.rows.tree, jnp.where(carried & ~there, LOST, 0.0).astype(cost.dtype)))
    gap, most = jnp.where(matched | lifts, gap, 0), jnp.where(matched, expected.most, 0)
    much = clocks.any(rows.tree, much | lifts)
    return ContactErrors(u, gap, matched | lifts, sticks, lifts, most, much, rough, partner)


def expect_contacts(model: Model, lane: Lane, tried: Proposal) -> ExpectedContacts:
    """Return the expected motion of the contacts of a step that was tried."""
    model, lane, tried = stop_gradient((model, lane, tried))
    ready, p = lane.ready, tried.impulse
    before, rows, V = ready.contacts, ready.rows, to_blocks(trees_of(model.topology), tried.state.v)
    h, b_n = lane.clocks.of_contacts(rows.tree, tried.h), ready.kinematics.b.z
    target = target_velocity(model, before.gap, h)
    strayed = jnp.abs(relative_velocity(rows, V).z + b_n * h - target)
    meet = relative_velocity(rows._replace(J=jax.tree.map(jnp.abs, rows.J)), jnp.abs(V))
    speed = jnp.maximum(jnp.maximum(meet.x, meet.y), meet.z)
    slack = jnp.minimum(strayed, CHANGED * p.z * rows.K.zz)
    most = model.rest_speed + jnp.maximum(jnp.abs(b_n) * h, SAME * speed) + slack
    friction, most_friction = jnp.sqrt(p.x * p.x + p.y * p.y), before.friction * p.z
    spare = (most_friction - friction) * rows.K.zz > SPARE * model.rest_speed
    sticks = ~before.is_limit & (friction < most_friction * FULL) & spare
    presses = p.z > 0
    at = tried.resting & presses, tried.resting & ~presses
    return ExpectedContacts(*at, before.gap, ready.u.z, target, sticks, speed, most)


def max_gap_error(model: Model, lane: Lane, h: Array, expected: ExpectedContacts) -> Array:
    """Return the largest error (*batch) [m] of the gaps of contacts that a step carried, before correction.

    It is the distance within which contacts are detected.  h: step of each clock [s].
    """
    each = stop_gradient(lane.clocks.of_contacts(lane.ready.rows.tree, h))
    off = jnp.abs(expected.gap) + expected.most * each + NEAR * model.gap_band
    return SURELY * jnp.where(expected.carried, off, 0).max(0, initial=0)


def _energy_error(
    model: Model,
    end: State,
    contacts: Contacts,
    rows: ContactJacobian,
    turned: tuple[Array, Vec3, Vec3],
    u: Vec3,
    fast: Array,
    may: float,
) -> Array:
    """Return the energy error of contacts (C, *batch) with velocity errors u, relative to the allowed one.

    It is 0 if the contact's normal has not turned as expected, for example when an edge of a face comes to lie on its
    neighbour: no shorter step would predict that.

    turned: row of each contact's partner at the start; expected normals of these at the end, and their rotation.
    fast: (C, *batch) bool, contacts for which it is computed; it is 0 for the others.
    may: its square is the allowed part of the kinetic energy of their trees.
    """

    def look(given: tuple[Any, ...]) -> Array:
        model, q, v, normal, rows, (was, expected, turn), u, fast = given
        expected, turn = jax.tree.map(lambda x: gather(x, was, 0), (expected, turn))
        off = normal - expected
        jumps = off.dot(off) > turn.dot(turn) * JUMP**2 + EVEN**2
        own = gather_trees(rows, kinetic_of_trees(model, q, v)).sum(1)
        # K is 0 along directions that cannot move
        parts = zip(u.xyz, (rows.K.xx, rows.K.yy, rows.K.zz), strict=True)
        lost = sum(safe_div(x * x, k) for x, k in parts) * 0.5
        most = may**2 * own
        return jnp.where(fast & ~jumps & (lost > 0), safe_div(lost, most, otherwise=LOST), 0)

    given = model, end.q, end.v, contacts.frame.rows[2], rows, turned, u, fast
    start = fast.any(), jnp.zeros_like(u.z)
    return loop(1, lambda given, x: x[0], lambda given, x: (x[0] & False, look(given)), given, start)[1]


def _match_contacts(
    model: Model, before: Contacts, contacts: Contacts, at: Vec3, near: Array, matched: Array, first: Array
) -> tuple[Array, Array, Array]:
    """Match contacts at both ends of a step.

    Return whether the pair of each contact of the start still touches; and for each contact of the end, the row of its
    partner at the start, and whether it has one.

    at: (C, *batch) predicted points of the contacts of the start [m].
    near: (C, *batch) squared distance within which a contact is the partner, even if another one was nearer [m^2].
    matched: (C, *batch) contacts of the start that are matched.
    first: (C, *batch) contacts that are preferred if two have merged into one.
    """
    rows = _row_numbers(before.gap)
    apart = contacts.point - at
    same = contacts.active & (contacts.pair == before.pair) & (contacts.dof == before.dof) & (apart.dot(apart) <= near)
    stay = matched, jnp.broadcast_to(rows, before.gap.shape), matched
    given = before, contacts, at, matched, first, near
    moved = (matched & ~same).any()
    look = functools.partial(_match_by_distance, _number_of_names(model))
    _, partners = loop(1, lambda given, x: x[0], lambda given, x: (x[0] & False, look(*given)), given, (moved, stay))
    return partners


def _match_by_distance(
    names: int, before: Contacts, contacts: Contacts, at: Vec3, matched: Array, first: Array, near: Array
) -> tuple[Array, Array, Array]:
    """Match contacts as `_match_contacts`, by search.  names: the number of pairs and joint limits.

    The contacts of a pair are adjacent rows, but inner ones are behind all others; a table holds the first row of each
    pair.
    """
    c, rows = len(before.gap), jnp.broadcast_to(_row_numbers(before.gap), before.gap.shape)
    matched = in_front(matched)
    begins = _scatter_min(jnp.where(contacts.active, _name(names, contacts), names), rows, names + 1, c)
    start = gather(begins, _name(names, before), 0)
    nearest, which = jnp.full_like(before.gap, jnp.inf), rows
    for k in range(A_PAIR):
        row = jnp.minimum(start + k, c - 1)
        point, active, pair, dof = jax.tree.map(
            lambda x, row=row: gather(x, row, 0), (contacts.point, contacts.active, contacts.pair, contacts.dof)
        )
        apart, same = point - at, active & (pair == before.pair) & (dof == before.dof)
        far = jnp.where(matched & same, apart.dot(apart), jnp.inf)
        which = jnp.where(far < nearest, row, which)
        nearest = jnp.minimum(nearest, far)
    there = matched & (nearest < jnp.inf)
    point = jax.tree.map(lambda x: gather(x, which, 0), contacts.point)
    mine = there & ((nearest <= near) | ~_another_is_nearer(before, at, point, nearest))
    was = _scatter_min(jnp.where(mine, which, c), jnp.where(first, rows, rows + c), c + 1, 2 * c)[:c]
    return there, jnp.where(was < 2 * c, was % c, rows), was < 2 * c


def _another_is_nearer(before: Contacts, at: Vec3, point: Vec3, nearest: Array) -> Array:
    """Return whether another contact of the same pair is nearer to a point than `nearest` squared (C, *batch)."""
    names = before.pair, before.dof
    nearer = jnp.zeros(nearest.shape, bool)
    for by in (*range(1 - A_PAIR, 0), *range(1, A_PAIR)):
        other = functools.partial(jnp.roll, shift=by, axis=0)
        same = functools.reduce(operator.and_, (other(x) == x for x in names), other(before.active))
        apart = jax.tree.map(other, at) - point
        nearer = nearer | (same & (apart.dot(apart) < nearest))
    return nearer


def _number_of_names(model: Model) -> int:
    return len(model.topology.pairs) + model.topology.nv


def _name(names: int, contacts: Contacts) -> Array:
    """Return the index (C, *batch) of each contact's pair; joint limits are numbered after all pairs."""
    pairs = jnp.maximum(contacts.pair, 0)
    return jnp.where(contacts.is_limit, names - 1 - contacts.dof, pairs)


def _scatter_min(index: Array, x: Array, n: int, none: int) -> Array:
    """Return the least entry (n, *batch) of x (C, *batch) with each index (C, *batch), `none` if there is no entry.

    The result of the last index is undefined.
    """
    if lane_programs() and x.ndim == 1:
        return segment_reduce(jnp.minimum, jnp.where(index < n - 1, x, none), index, n, none)
    lanes = math.prod(x.shape[1:])
    at = index.reshape(len(x), lanes) * lanes + jnp.arange(lanes, dtype=index.dtype)
    table = jnp.full(n * lanes, none, x.dtype).at[at.reshape(-1)].min(x.reshape(-1))
    return table.reshape(n, *x.shape[1:])


def since_return(
    model: Model, lane: Lane, h: Array, contacts: Contacts, rows: ContactJacobian, u_n: Array, deep: Array, since: Array
) -> Array:
    """Return the time (C, *batch) [s] since contacts that opened at the start of a step closed again.

    It follows from their gap and velocity at the start and their depth at the end, for a constant acceleration. Other
    contacts keep `since`, and so do contacts whose velocity u_n does not fit.

    h: length of the step of each clock [s].
    u_n: (C, *batch) normal velocities at the end [m/s].
    deep: (C, *batch) bool, contacts that are too deep at the end.
    since: (C, *batch) estimate for the other contacts [s].
    """
    ready, clocks = lane.ready, lane.clocks
    here, there = (clocks.of_contacts(x.tree, h) for x in (ready.rows, rows))
    touched = ready.contacts.active & (ready.contacts.gap <= ENVELOPE * model.gap_band) & (ready.u.z > 0)

    def look(given: tuple[Any, ...]) -> Array:
        before, contacts, at, u, touched, h, u_n, deep, since = given
        far = jnp.full_like(before.gap, jnp.inf)
        _, was, matched = _match_by_distance(_number_of_names(model), before, contacts, at, touched, touched, far)
        gap, u = (gather(x, was, 0) for x in (before.gap, u))
        bent = (contacts.gap - gap - u * h) / (h * h)  # gap + u t + bent t^2
        alike = jnp.abs(u + 2 * bent * h - u_n) <= ALIKE * jnp.abs(u_n)
        back = matched & deep & (h > 0) & (bent < 0) & alike
        square = u * u - 4 * bent * gap
        t = safe_div(u + safe_sqrt(square), -2 * bent, back)
        return jnp.where(back, jnp.clip(h - t, 0), since)

    at = ready.contacts.point + ready.kinematics.point * here
    given = ready.contacts, contacts, at, ready.u.z, touched, there, u_n, deep, since
    start = deep.any() & touched.any(), since
    return loop(1, lambda given, x: x[0], lambda given, x: (x[0] & False, look(given)), given, start)[1]


def _row_numbers(like: Array) -> Array:
    return jnp.arange(len(like), dtype=jnp.int32).reshape(-1, *(1,) * (like.ndim - 1))
