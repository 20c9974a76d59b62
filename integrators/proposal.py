"""A proposal: the end of a step of length h, with the impulses of resting contacts."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..contact.approach import SLOW
from ..contact.contact_jacobian import (
    ContactJacobian,
    apply_impulses,
    inverse_mass_matrix,
    jacobian_at,
    relative_velocity,
)
from ..contact.contacts import Contacts, tangents
from ..contact.determine import phases, surface_velocity
from ..contact.events import SimultaneousImpacts
from ..contact.grips import Grips, grips_that_hold, joint_grips, lock_dofs, part_until_stop, stop_held_joints
from ..contact.impulses import ContactImpulses
from ..contact.resting.models import resting_named
from ..contact.resting.solve import FULL, Midway, Rest, stopped_at_start
from ..engine.algebra.bounded import partial_jvp
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.algebra.vec3 import Vec3
from ..engine.dynamics.kinematics import integrate_q
from ..engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ..engine.model import Model
from ..engine.results import gravest
from ..engine.state import State
from .clocks import Clocks
from .creep import without_creep
from .islands_asleep import dofs_asleep, restore_sleeping
from .lanes import Correction, Lane
from .motion.exact import exact, impulses_from
from .motion.softened import damped_acceleration, has_joints, soften
from .rules import Rules
from .schemes import FIRST_ORDER, FOURTH_ORDER, step_and_close
from .standstill import zero_faint_velocities

LEAST = 1e-5  # part of a step: a slide that stops closer to its ends is ignored
SLOWEST = 0.01  # rest speeds: where a slower slip turns back is not searched for
SLIDES = 3  # most rejected steps to locate the end of a slide


class Proposal(NamedTuple):
    """The end of a step, and the results of the step.

    h: length of the step of each clock, (*batch) or (T,) [s].
    state: the state at its end.
    spread: (*batch, nv) joint impulses spread over the step, of resting contacts, joints that slide and external
        forces; None if there are none [N m s, N s].
    impulse: (C, *batch) impulses of the contacts at the start, in their frames midway [N s].
    resting: (C, *batch) whether each of these rests.
    rests: whether any contact rests, for each clock.
    part: part of the step after which the first slide stops, 1 if none does, for each clock.
    code: (*batch) result code.
    locked_dofs: (*batch, nv) joints that friction or a motor holds through the step; None if the model has none.
    stops: (*batch, nv) joints that come to be held at its end; None if the model has none.
    uncorrected: the state at its end before corrections (`correction.py`).
    contact_spread: (*batch, nv) the part of `spread` that comes from contacts [N m s, N s].
    window: (*batch) whether the step is a window; None in runs without windows.
    window_impacts: impacts at the start of a window; None in runs without windows.
    residual: (*batch) violation of the contact law by the velocities at its end [m/s].
    start_v: (*batch, nv) velocities at its start, after the impulses there.
    contact_impulses: impulses of contacts over the step, before corrections; None if no run reports them.
    start_impulses: impulses of contacts at its start; None if no run reports them.
    first_impulse: (C, *batch) the same for each contact, in the contact frames, without `window_impacts` [N s]; None
        in runs without windows.
    loop_drift: (*batch) drift of the loops in it, see `schemes.Closing`; None if nothing closes them.
    """

    h: Array
    state: State
    spread: Array | None
    impulse: Vec3
    resting: Array
    rests: Array
    part: Array
    code: Array
    locked_dofs: Array | None = None
    stops: Array | None = None
    uncorrected: State | None = None
    contact_spread: Array | None = None
    window: Array | None = None
    window_impacts: SimultaneousImpacts | None = None
    residual: Array | None = None
    start_v: Any = None
    contact_impulses: ContactImpulses | None = None
    start_impulses: ContactImpulses | None = None
    loop_drift: Array | None = None
    first_impulse: Vec3 | None = None


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def propose(rules: Rules, model: Model, lane: Lane, h: Array, window: Array | None = None) -> Proposal:
    """Propose a step from an accepted state.

    Fresh lanes stay in place. A step whose end is corrected is not computed again.
    h: length of the step of each clock [s].
    window: (*batch) whether it is a window; None: no step is.
    """
    search, clocks, topology = lane.search, lane.clocks, model.topology
    take_step = lambda: _take_step(rules, model, lane._replace(tried=None), h, window)  # noqa: E731
    if lane.tried is None:
        tried = take_step()
    else:
        same = search.correction.times > 0
        if clocks.each():  # a tree that waits for others keeps its step
            same = same | (jnp.isfinite(search.aim) & (h == lane.tried.h)) | (h == 0)
        known = ((same & ~lane.fresh) | (lane.counts.ticks == 0)).all()  # the last step is no proposal of a fresh lane
        tried = jax.lax.cond(known, lambda: lane.tried, take_step)
    q, v = _apply_correction(model, clocks, tried.uncorrected, search.correction)
    q, v = zero_faint_velocities(
        model, lane.ready.state, clocks.of_trees(h), q, v, tried.contact_spread, tried.residual
    )
    if lane.island is not None:
        q, v = restore_sleeping(topology, lane.island, lane.ready.state, q, v)
    stays = (lane.fresh | (h == 0)) if clocks.each() else lane.fresh
    q = jnp.where(clocks.of_coordinates(topology, stays), lane.ready.state.q, q)
    v = jnp.where(clocks.of_dofs(topology, stays), lane.ready.state.v, v)
    return tried._replace(state=State(q, v, tried.uncorrected.t))


def initial_proposal(rules: Rules, model: Model, lane: Lane) -> Proposal | None:
    """Return the last proposal of a fresh lane: it stays in place.

    It is None if steps are always computed again, because the times at which joints are stopped depend on the
    correction.
    """
    if rules.resting != "solve" or rules.time_control == "fixed" or any(model.topology.gripped):
        return None
    window = None if lane.search.window is None else lane.fresh
    shapes = jax.eval_shape(lambda: propose(rules, model, lane, lane.clock.left, window))
    nothing: Proposal = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    here = lane.ready.state
    return nothing._replace(state=here, uncorrected=here, part=jnp.ones_like(nothing.part))


@functools.partial(jax.jit, static_argnums=0)
def _take_step(rules: Rules, model: Model, lane: Lane, h: Array, window: Array | None) -> Proposal:
    """Take the step, without corrections."""
    ready, clocks = lane.ready, lane.clocks
    state, rows, u = ready.state, ready.rows, ready.u
    contacts = clocks.under_way(rows.tree, ready.contacts, h, lane.fresh)
    each, of_dofs = clocks.of_contacts(rows.tree, h), clocks.of_dofs(model.topology, h)
    resting = phases(model, contacts, u.z).resting
    rest = resting_named(rules.resting)
    there, midway, grips, dv = _midway(rules, model, lane, h, u.z, window)
    solution = rest.carry(model, contacts, rows, state.v, state.v + dv * of_dofs, each, midway, grips, window)
    if window is not None:
        resting = jnp.where(window, contacts.active & (solution.impulse.z > 0), resting)
    contact_spread = solution.spread
    if rules.scheme == "exact":  # the other schemes move impulses with the bodies
        contact_spread = impulses_from(model, there, state.q, contact_spread)
    spread, start = ready.drive.impulses(of_dofs, contact_spread), solution.v
    locked, stuck, stops = model, None, None
    if grips is not None and solution.grip is not None:
        stuck, start = stop_held_joints(model, grips, grips_that_hold(model, grips, solution.grip), start)
        locked = lock_dofs(model, stuck)
    begin, drive = State(state.q, start, state.t), (ready.drive.motors, spread)
    if clocks.each():
        after, closing = exact(locked, begin, clocks.latest(h), *drive, each=h), None
    else:
        after, closing = step_and_close(rules.scheme, locked, begin, h, *drive)
    if has_joints(model.topology) and rules.scheme in FOURTH_ORDER:
        sticks = _sticks_all_through(model, contacts, u, solution.impulse) & resting
        sticks = sticks if window is None else sticks & ~window
        q = without_creep(model, clocks, midway.rows, contacts, midway.frame, sticks, state.q, after.q, stuck)
        after = State(q, after.v, after.t)
    after = State(after.q, after.v, state.t + clocks.latest(h))
    part = clocks.least(
        rows.tree, _part_until_stick(rules, model, resting, rows, contacts.friction, u, solution.impulse, after.v), 1
    )
    if grips is not None:
        _, v = _apply_correction(model, clocks, after, lane.search.correction)
        slid, stops, wild = stop_gradient(part_until_stop(model, grips, start, v, h))
        part = jnp.where(wild, slid, jnp.minimum(part, slid))
        stay = wild[..., None]  # stay at the start, to try again
        after = State(jnp.where(stay, state.q, after.q), jnp.where(stay, start, after.v), after.t)
        closing = None if closing is None else jax.tree.map(lambda x: jnp.where(wild, 0, x), closing)
    loop_drift, code = None, solution.code
    if closing is not None:
        loop_drift, code = closing.drift, gravest(code, jnp.where(lane.fresh, 0, closing.code))
    contacts_found = solution.impulse, resting, clocks.any(rows.tree, resting), part, code, stuck, stops
    residual = jnp.broadcast_to(solution.residual, code.shape).astype(h.dtype)
    contact_impulses, first = (
        (None, None) if midway.point is None else _contact_impulses(model, lane, h, contacts, midway, solution)
    )
    at_start = None if window is None else _without_impacts(solution, window)
    last = window, solution.window_impacts, residual, start, contact_impulses, first, loop_drift, at_start
    return Proposal(h, after, spread, *contacts_found, after, solution.spread, *last)


def _without_impacts(solution: Rest, window: Array) -> Vec3 | None:
    """Return the impulses (C, *batch) at the start of the step that are not logged as impacts [N s]."""
    struck, first = solution.window_impacts, solution.start_impulses
    return first if struck is None else jax.tree.map(lambda x: jnp.where(window & (struck.p.z > 0), 0, x), first)


def _contact_impulses(
    model: Model, lane: Lane, h: Array, contacts: Contacts, midway: Midway, solution: Rest
) -> tuple[ContactImpulses, ContactImpulses]:
    """Return the impulses of contacts over the step, and at its start."""
    q, v = lane.ready.state.q, lane.ready.state.v
    half, there = lane.clocks.along(model, q, v, h * 0.5), contacts._replace(frame=midway.frame, point=midway.point)
    return ContactImpulses.by(model, half, there, solution.impulse), ContactImpulses.by(
        model, q, contacts, solution.start_impulses
    )


def _derivative(rules: Rules, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Proposal, Proposal]:
    """Return the derivative; fresh lanes have a step of 1 s instead of 0 to avoid a division by 0, and do not move."""

    def away(model: Model, lane: Lane, h: Array, *window: Array | None) -> Proposal:
        step = jnp.where(lane.fresh, 1, h)
        end = propose.fun(rules, model, lane, step, *window)
        return end._replace(h=h, state=State(end.state.q, end.state.v, end.state.t - (step - h)))

    return partial_jvp(away, primals, tangents)


propose.defjvp(_derivative, symbolic_zeros=True)


def _midway(
    rules: Rules, model: Model, lane: Lane, h: Array, u_n: Array, window: Array | None
) -> tuple[Array, Midway, Grips | None, Array]:
    """Return coordinates and contacts in the middle of the step (of a window: at its start), the grips of joints, and
    the mean accelerations (*batch, nv) without contacts and grips.

    u_n: (C, *batch) normal velocities at its start [m/s].
    """
    ready = lane.ready
    state, contacts, kinematics, half = ready.state, ready.contacts, ready.kinematics, h * 0.5
    if window is not None:  # a body that moves past a fixed point would rotate about it
        half = jnp.where(window, 0, half)
    middle, half_there = half, lane.clocks.along(model, state.q, state.v, half)
    half = lane.clocks.of_contacts(ready.rows.tree, half)
    n = contacts.frame.rows[2] + kinematics.normal * half
    frame = tangents(n * (1 / safe_sqrt(n.dot(n), contacts.active, 1)))
    frame = jax.tree.map(lambda new, old: jnp.where(contacts.is_limit, old, new), frame, contacts.frame)
    point = contacts.point + kinematics.point * half
    there = contacts._replace(point=point, frame=frame, surface=surface_velocity(model, contacts.pair, point))
    dv = ready.dv
    if has_joints(model.topology) and rules.scheme in FOURTH_ORDER:
        midway_state = State(half_there, state.v, state.t + lane.clocks.latest(middle))
        model, dv = soften(model, state, midway_state, ready.drive, lane.clocks.of_dofs(model.topology, middle * 2))
    inverse, grips = None, None
    if has_joints(model.topology) and rules.scheme in FIRST_ORDER:
        length = lane.clocks.of_dofs(model.topology, h)
        model, inverse, dv = damped_acceleration(model, state, ready.drive, length, dv, half_there)
    if lane.island is not None:
        dv = jnp.where(jnp.moveaxis(dofs_asleep(model.topology, lane.island), 0, -1), 0, dv)
    if any(model.topology.gripped):
        inverse = inverse_mass_matrix(model, half_there) if inverse is None else inverse
        rests = phases(model, contacts, u_n).resting.any(0)
        implicit = (lane.search.rejected >= SLIDES) | (rules.time_control == "fixed")
        implicit = implicit | stopped_at_start(model, contacts, u_n).any(0)  # these change the motion of joints
        implicit = implicit if window is None else implicit | window
        grips = joint_grips(model, ready.drive.motors, state.q, state.v, ready.dv, h, inverse, rests, implicit)
    reported = point if rules.report else None
    rows = jacobian_at(model, half_there, there, inverse)
    return half_there, Midway(rows, kinematics.b * half, frame, reported, ready.load), grips, dv


def _apply_correction(model: Model, clocks: Clocks, end: State, by: Correction) -> tuple[Array, Array]:
    """Return q, v at the end of a step, with the correction applied."""
    some, topology = by.times > 0, model.topology
    shift, kick = (from_blocks(trees_of(topology), x) for x in (by.shift, by.kick))
    q = jnp.where(clocks.of_coordinates(topology, some), integrate_q(model, end.q, shift, 1.0), end.q)
    return q, jnp.where(clocks.of_dofs(topology, some), end.v + kick, end.v)


def _part_until_stick(
    rules: Rules, model: Model, resting: Array, rows: ContactJacobian, mu: Array, u: Vec3, p: Vec3, v: Array
) -> Array:
    """Return the part of the step after which each sliding contact sticks (C, *batch), 1 if it does not.

    u, p, v: velocities of the contacts at its start, their impulses, velocities (*batch, nv) at its end.
    A contact that sticks at the end needs less friction than mu p_n. While it slides, friction is mu p_n against its
    slip; if it lasted for the whole step, the velocity at the end would show how fast the slip decays. What is left of
    the friction after the slide holds the contact, or is more than mu p_n along the first slip: then it slides back.
    Slides slower than SLOW that stick, or than SLOWEST, and those that stop within LEAST of either end of the step, are
    ignored. Schemes of order 1 have larger errors than slow slides have, and do not look for where these turn.
    """
    slip, used, most = _length(u.x, u.y), _length(p.x, p.y), mu * p.z
    slowest = SLOW if rules.scheme in FIRST_ORDER else SLOWEST
    slides = resting & (p.z > 0) & (slip > slowest * model.rest_speed)
    x, y = (safe_div(c, slip, slides) for c in (u.x, u.y))
    more_x, more_y = (jnp.where(slides, -most * c - own, 0) for c, own in ((x, p.x), (y, p.y)))
    more = Vec3(more_x, more_y, jnp.zeros_like(p.z))
    end = relative_velocity(rows, apply_impulses(rows, to_blocks(trees_of(model.topology), v), more))
    back = -(x * end.x + y * end.y)  # speed with which it would slide back at the end
    stops = slides & (back > slip * LEAST) & (slip > (slip + back) * LEAST)
    part = safe_div(slip, slip + back, stops, 1)
    sticks = (slip > SLOW * model.rest_speed) & (used < most * (1 - LEAST))
    against = -(x * p.x + y * p.y)
    turns = against < most * (2 * part - 1 - LEAST)
    return jnp.where(stops & (sticks | turns), part, 1)


def _sticks_all_through(model: Model, contacts: Contacts, u: Vec3, p: Vec3) -> Array:
    """Return whether each contact sticks from the start of the step on, (C, *batch). What a conveyor carries moves."""
    most, used = contacts.friction * p.z, p.x * p.x + p.y * p.y
    still = u.x * u.x + u.y * u.y <= (SLOW * model.rest_speed) ** 2
    on_conveyor = contacts.surface.dot(contacts.surface) > 0
    return ~contacts.is_limit & ~on_conveyor & (p.z > 0) & still & (used < (most * FULL) ** 2)


@jax.custom_jvp
def _length(x: Array, y: Array) -> Array:
    return jnp.sqrt(x * x + y * y)


@_length.defjvp
def _length_changes(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the derivative, 0 for a vector of length 0."""
    (x, y), (dx, dy) = primals, tangents
    length = _length(x, y)
    return length, safe_div(x * dx + y * dy, length)
