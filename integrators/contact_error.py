"""What a step missed of the contacts that it carried.

A contact that has an impulse all through a step moves at its end as `contact/resting/solve.py` aimed at, up to how well
that knew where the contact goes and how its normal turns: to order 2 in the step. A wheel of any shape that rolls would
so strike the ground, or leave it, at a speed and over a gap that no law of motion knows. Both are measured where the
step ends. Then the step is taken again, and its end put right (`correction.py`). The kick takes p.u/2 of the energy, of
order 4 in the step; a step of which that is more than `ROUGH` squared of the kinetic energy of the trees that touch is
taken shorter, and how much of it tells how long the next may be.

Contacts at both ends of the step are the same if they are of one pair of shapes or one joint's limit, and the nearest
ones to where the first should have gone. What is off by more than a step can explain is something else, and is left to
time control. A step can explain what the contact's own velocity, or how its normal turns, may be wrong by, and that the
scheme led elsewhere than the impulse was for: forces change within a step, those of stiff springs by much, while
impulses are found for the forces of its start.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..contact.contacts import Contacts
from ..contact.determine import ENVELOPE
from ..contact.indexing import gather
from ..contact.jacobian import ContactJacobian, gather_trees, relative_velocity
from ..contact.resting.solve import FULL
from ..contact.resting.targets import target_velocity
from ..engine.algebra.bounded import loop
from ..engine.algebra.vec3 import Vec3
from ..engine.dynamics.energy import kinetic_of_trees
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from .lanes import Lane
from .proposal import Proposal
from .rules import Rules
from .schemes import FIRST_ORDER

A_PAIR = 4  # contacts has a pair of shapes at most
NEAR = 5.0  # of the gap band: so much may a gap be off
STILL = 0.05  # of the rest speed: so much may a velocity be off
ROUGH = 0.001  # squared, of the energy: more, and a shorter step is taken
ROUGHER = 0.01  # the same, where the scheme is of order 1 and takes more than that by itself
QUIET = 0.2  # of the rest speed: no step is too rough that leaves no more
KNOWN = 1 / 4  # of that, as a velocity: so much, and it is asked how much energy it takes
LOST = 16.0  # times as much as allowed, a contact counts for that is not where it should be
SURELY = 10.0  # times as far off as a contact may be that is the same, it is looked for
SAME = 0.05  # of the velocities that meet: more, and it is another contact
CHANGED = 0.5  # of what carries a contact, at most, is for forces that change within the step
ALIKE = 0.5  # of the speed at which a contact closes: what came back is not farther from that


class ContactErrors(NamedTuple):
    """What the contacts have at the end of a step that they should not; 0 of those which it did not carry.

    u: (C, *batch) velocities [m/s].
    gap: (C, *batch) [m].
    normal, tangent: (C, *batch) whether the step held them in these directions.
    lifts: (C, *batch) whether they touched, opened without an impulse, and sank in: only a gap is missed.
    most: (C, *batch) what u.z may be at most [m/s].
    much: of each clock, whether that is to be put right.
    rough: of each clock, how much energy its step took, of what it may: more than 1, and a shorter one should be taken.
    """

    u: Vec3
    gap: Array
    normal: Array
    tangent: Array
    lifts: Array
    most: Array
    much: Array
    rough: Array


class ExpectedContacts(NamedTuple):
    """What a step knew of the contacts it began with, (C, *batch).

    carried: whether it had an impulse all through the step.  freed: whether it touched, and had none.
    gap: [m].  u_n: normal velocity [m/s].  goal: what that is to be at the end [m/s].
    sticks: whether it does.
    speed: of the velocities that meet there [m/s].
    most: what its own may be off by at the end [m/s].
    """

    carried: Array
    freed: Array
    gap: Array
    u_n: Array
    goal: Array
    sticks: Array
    speed: Array
    most: Array


def contact_errors(
    rules: Rules,
    model: Model,
    lane: Lane,
    tried: Proposal,
    knew: ExpectedContacts,
    contacts: Contacts,
    rows: ContactJacobian,
    u: Vec3,
) -> ContactErrors:
    """contacts, rows: of the step's end.  u: (C, *batch) how the contacts move there, in their frames [m/s]."""
    may = ROUGHER if rules.scheme in FIRST_ORDER else ROUGH
    ready, clocks, before = lane.ready, lane.clocks, lane.ready.contacts
    h, h_there = clocks.of_contacts(ready.rows.tree, tried.h), clocks.of_contacts(rows.tree, tried.h)
    path, carried = ready.kinematics.point * h, knew.carried
    inside = contacts.active & (contacts.gap < -NEAR * model.gap_band)
    touched = carried | (knew.freed & inside.any(0))
    near = path.dot(path) * 0.0625 + (1000 * model.gap_band) ** 2
    there, was, held = _match_contacts(model, before, contacts, before.point + path, near, touched, carried)
    knew = jax.tree.map(lambda x: gather(x, was, 0), knew)
    # what has sunk in comes out as was aimed at; else the surfaces are to meet
    sunk = knew.gap < -ENVELOPE * model.gap_band
    gap = contacts.gap - jnp.where(sunk, knew.gap + (knew.u_n + knew.goal) * (h_there * 0.5), 0)
    u_n = u.z - knew.goal
    held = held & (jnp.abs(gap) <= knew.most * h_there + NEAR * model.gap_band)
    # a scheme of order 1 takes what leaves along a curve into the ground first
    lifts = held & ~knew.carried & inside & (gap < -NEAR * model.gap_band) & (u.z > 0)
    held = held & knew.carried & (jnp.abs(u_n) <= knew.most)
    sticks = held & knew.sticks
    u = Vec3(jnp.where(sticks, u.x, 0), jnp.where(sticks, u.y, 0), jnp.where(held, u_n, 0))
    apart = jnp.abs(gap) > jnp.maximum(NEAR * model.gap_band, jnp.where(sunk, 0, jnp.abs(knew.gap)))
    much = held & (apart | (jnp.abs(u_n) > STILL * model.rest_speed))
    least = QUIET * model.rest_speed
    large, fast = (u.dot(u) > jnp.maximum(part * may * knew.speed, least) ** 2 for part in (KNOWN, 1))
    cost = _energy_error(model, tried.state, rows, u, large, may)
    rough = clocks.most(rows.tree, jnp.where(fast, cost, jnp.minimum(cost, 1)))
    rough = jnp.maximum(rough, clocks.most(ready.rows.tree, jnp.where(carried & ~there, LOST, 0.0).astype(cost.dtype)))
    gap, most = jnp.where(held | lifts, gap, 0), jnp.where(held, knew.most, 0)
    return ContactErrors(u, gap, held | lifts, sticks, lifts, most, clocks.any(rows.tree, much | lifts), rough)


def expect_contacts(model: Model, lane: Lane, tried: Proposal) -> ExpectedContacts:
    """Of a step that was tried."""
    model, lane, tried = stop_gradient((model, lane, tried))
    ready, p = lane.ready, tried.impulse
    before, rows, V = ready.contacts, ready.rows, to_blocks(trees_of(model.topology), tried.state.v)
    h, b_n = lane.clocks.of_contacts(rows.tree, tried.h), ready.kinematics.b.z
    goal = target_velocity(model, before.gap, h)
    strayed = jnp.abs(relative_velocity(rows, V).z + b_n * h - goal)
    meet = relative_velocity(rows._replace(J=jax.tree.map(jnp.abs, rows.J)), jnp.abs(V))
    speed = jnp.maximum(jnp.maximum(meet.x, meet.y), meet.z)
    slack = jnp.minimum(strayed, CHANGED * p.z * rows.K.zz)
    most = model.rest_speed + jnp.maximum(jnp.abs(b_n) * h, SAME * speed) + slack
    sticks = ~before.is_limit & (jnp.sqrt(p.x * p.x + p.y * p.y) < before.friction * p.z * FULL)
    presses = p.z > 0
    at = tried.resting & presses, tried.resting & ~presses
    return ExpectedContacts(*at, before.gap, ready.u.z, goal, sticks, speed, most)


def max_gap_error(model: Model, lane: Lane, h: Array, knew: ExpectedContacts) -> Array:
    """How far off (*batch) [m] the gaps of contacts that a step carried may be at its end, before it is put right: so
    near they are looked for.  h: of each clock [s]."""
    each = stop_gradient(lane.clocks.of_contacts(lane.ready.rows.tree, h))
    off = jnp.abs(knew.gap) + knew.most * each + NEAR * model.gap_band
    return SURELY * jnp.where(knew.carried, off, 0).max(0, initial=0)


def _energy_error(model: Model, end: State, rows: ContactJacobian, u: Vec3, fast: Array, may: float) -> Array:
    """(C, *batch) the energy that contacts take which are off by as much as u, of what they may.

    fast: (C, *batch) those of which that is asked; 0 of others.  may: squared, of the energy of their trees.
    """

    def look(given: Any) -> Array:
        model, q, v, rows, u, fast = given
        own = gather_trees(rows, kinetic_of_trees(model, q, v)).sum(1)
        # along what cannot move, K is 0
        parts = zip(u.xyz, (rows.K.xx, rows.K.yy, rows.K.zz), strict=True)
        lost = sum(jnp.where(k > 0, x * x / jnp.where(k > 0, k, 1), 0) for x, k in parts) * 0.5
        most = may**2 * own
        return jnp.where(fast & (lost > 0), jnp.where(most > 0, lost / jnp.where(most > 0, most, 1), LOST), 0)

    given = model, end.q, end.v, rows, u, fast
    start = fast.any(), jnp.zeros_like(u.z)
    return loop(1, lambda given, x: x[0], lambda given, x: (x[0] & False, look(given)), given, start)[1]


def _match_contacts(
    model: Model, before: Contacts, contacts: Contacts, at: Vec3, near: Array, held: Array, first: Array
) -> tuple[Array, Array, Array]:
    """Of the contacts that are held, which are still there; of those of the end, which each was, and whether it was.

    at: (C, *batch) where the first should have gone.  near: (C, *batch) how far, squared, they may be from there, and
    need not be looked for elsewhere [m^2].  first: (C, *batch) those that are taken where two may have become one.
    """
    rows = _row_numbers(before.gap)
    apart = contacts.point - at
    same = contacts.active & (contacts.pair == before.pair) & (contacts.dof == before.dof) & (apart.dot(apart) <= near)
    stay = held, jnp.broadcast_to(rows, before.gap.shape), held
    given = before, contacts, at, held, first
    moved = (held & ~same).any()
    look = functools.partial(_match_by_distance, _number_of_names(model))
    _, found = loop(1, lambda given, x: x[0], lambda given, x: (x[0] & False, look(*given)), given, (moved, stay))
    return found


def _match_by_distance(
    names: int, before: Contacts, contacts: Contacts, at: Vec3, held: Array, first: Array
) -> tuple[Array, Array, Array]:
    """As `_partners`.  names: how many pairs and joints' limits there are.

    A pair's contacts are one after another: where they begin is written down by the pair's number, and read there."""
    c, rows = len(before.gap), jnp.broadcast_to(_row_numbers(before.gap), before.gap.shape)
    begins = _scatter_min(jnp.where(contacts.active, _name(names, contacts), names), rows, names + 1, c)
    start = gather(begins, _name(names, before), 0)
    nearest, which = jnp.full_like(before.gap, jnp.inf), rows
    for k in range(A_PAIR):
        row = jnp.minimum(start + k, c - 1)
        point, active, pair, dof = jax.tree.map(
            lambda x, row=row: gather(x, row, 0), (contacts.point, contacts.active, contacts.pair, contacts.dof)
        )
        apart, same = point - at, active & (pair == before.pair) & (dof == before.dof)
        far = jnp.where(held & same, apart.dot(apart), jnp.inf)
        which = jnp.where(far < nearest, row, which)
        nearest = jnp.minimum(nearest, far)
    there = nearest < jnp.inf
    was = _scatter_min(jnp.where(there, which, c), jnp.where(first, rows, rows + c), c + 1, 2 * c)[:c]
    return there, jnp.where(was < 2 * c, was % c, rows), was < 2 * c


def _number_of_names(model: Model) -> int:
    return len(model.topology.pairs) + model.topology.nv


def _name(names: int, contacts: Contacts) -> Array:
    """(C, *batch) the number of each contact's pair, or behind all pairs of its joint's limit."""
    pairs = jnp.maximum(contacts.pair, 0)
    return jnp.where(contacts.is_limit, names - 1 - contacts.dof, pairs)


def _scatter_min(index: Array, x: Array, n: int, none: int) -> Array:
    """(n, *batch) the least of the entries of x (C, *batch) with each index (C, *batch); `none` where there is none."""
    lanes = math.prod(x.shape[1:])
    at = index.reshape(len(x), lanes) * lanes + jnp.arange(lanes, dtype=index.dtype)
    table = jnp.full(n * lanes, none, x.dtype).at[at.reshape(-1)].min(x.reshape(-1))
    return table.reshape(n, *x.shape[1:])


def since_return(
    model: Model, lane: Lane, h: Array, contacts: Contacts, rows: ContactJacobian, u_n: Array, deep: Array, since: Array
) -> Array:
    """How long ago (C, *batch) [s] contacts that are deep at the end of a step h [s] of each clock, and touched and
    parted at its start, came back: by how they began, and how deep they are. Of others what is told, and of those that
    close at another speed, u_n (C, *batch) [m/s], than they would have come back with."""
    ready, clocks = lane.ready, lane.clocks
    here, there = (clocks.of_contacts(x.tree, h) for x in (ready.rows, rows))
    touched = ready.contacts.active & (ready.contacts.gap <= ENVELOPE * model.gap_band) & (ready.u.z > 0)

    def look(given: Any) -> Array:
        before, contacts, at, u, touched, h, u_n, deep, since = given
        _, was, found = _match_by_distance(_number_of_names(model), before, contacts, at, touched, touched)
        gap, u = (gather(x, was, 0) for x in (before.gap, u))
        bent = (contacts.gap - gap - u * h) / (h * h)  # gap + u t + bent t^2
        alike = jnp.abs(u + 2 * bent * h - u_n) <= ALIKE * jnp.abs(u_n)
        back = found & deep & (h > 0) & (bent < 0) & alike
        square = u * u - 4 * bent * gap
        t = (u + jnp.sqrt(jnp.where(square > 0, square, 0))) / jnp.where(back, -2 * bent, 1)
        return jnp.where(back, jnp.clip(h - t, 0), since)

    at = ready.contacts.point + ready.kinematics.point * here
    given = ready.contacts, contacts, at, ready.u.z, touched, there, u_n, deep, since
    start = deep.any() & touched.any(), since
    return loop(1, lambda given, x: x[0], lambda given, x: (x[0] & False, look(given)), given, start)[1]


def _row_numbers(like: Array) -> Array:
    return jnp.arange(len(like), dtype=jnp.int32).reshape(-1, *(1,) * (like.ndim - 1))
