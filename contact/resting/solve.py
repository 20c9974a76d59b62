"""Resting and sliding contacts: the impulses that carry them over a step, found together.

A train of micro-collisions (Mirtich 1996, section 3.3; Holck 2.2.2) keeps a body on its support by impulses that are
too small and too many to simulate. Over a step of length h they add up to one impulse p for each contact:

    u(h) = J (v + h a) + W p + h/2 dJ/dt v,   with J, W = J M^-1 J^T of the middle of the step
    0 <= p_n _|_ u_n(h) - target >= 0,   Coulomb: |p_t| <= mu p_n, opposed to u_t(h)

J turns with the bodies. J of the middle of the step gives forces their mean direction; they do no work on contacts that
stick. The step then applies p/h as constant forces, so that a block slides on an exact parabola, and a block that
sticks stays. The target velocity closes the gap over some steps, -CLOSING gap/STEP, and is at most half the rest
speed: a contact that is too deep comes out slowly, still resting, and does not jump.

The direction of slip changes during a step. A step with contacts that slide all through it is solved twice, the second
time with friction opposed to the mean slip (u(0) + u(h))/2: this is of order 2, friction opposed to u(h) of order 1.

Contacts that close too slowly to bounce, and those that still close after impacts, are stopped when the step starts.

Joints that dry friction or a motor holds (`grips.py`) are solved for in the same systems.

In a window, contacts that may touch before its end act from its start (`window_targets.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.bounded import loop
from ...engine.algebra.vec3 import Mat3, Vec3
from ...engine.compaction import map_to_last
from ...engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ...engine.model import Model
from ...engine.results import gravest
from ..cone.solve import solve_cone
from ..contact_jacobian import ContactJacobian, apply_impulses, gather_trees, joint_impulses, relative_velocity
from ..contacts import Contacts
from ..determine import SLOW, phases
from ..events import SimultaneousImpacts
from ..grips import Grips, append_grips, give_way
from .targets import STEP, gap_to_close, target_velocity
from .window_targets import WindowStart, WindowTargets

CONFLICT = 0.3  # part of the fastest target velocity, or of a gap band per step: residual allowed if targets conflict
FULL = 1 - 1e-5  # part of mu p_n: a contact with more friction slides all through the step
MOVES = 1e-2  # part of the speed that gravity adds in a step: a tree that is faster moves
AT_ONCE = 32  # contacts: up to this many, all rows are selected, also inactive ones
LEAST_ROTATION = 1e-9  # sine of the angle by which slip must turn before a second solve


class Midway(NamedTuple):
    """Contacts in the middle of a step.

    rows: the contact Jacobian there.
    bias: (C, *batch) h/2 dJ/dt v, the change of u in the second half of the step because J turns, in `frame` [m/s].
    frame: (C, *batch) contact frames.
    point: (C, *batch) contact points [m]; None if no forces on links are reported.
    load: (C, *batch) expected contact forces for a warm start, in `frame`; None in runs without windows [N].
    """

    rows: ContactJacobian
    bias: Vec3
    frame: Mat3
    point: Vec3 | None = None
    load: Vec3 | None = None


class Rest(NamedTuple):
    """The effect of resting contacts on a step.

    v: (*batch, nv) velocities at the start of the step.
    spread: (*batch, nv) joint impulses, spread evenly over the step [N m s, N s].
    impulse: (C, *batch) impulse of each contact on A, spread evenly over the step, in its frame midway [N s].
    code: (*batch) result code.
    grip: (G, *batch) impulses of joint friction and motors [N m s, N s]; None if there are none.
    window_impacts: impacts at the start of a window; None in runs without windows.
    residual: (*batch) violation of the law by the velocities at the end [m/s].
    start_impulses: (C, *batch) impulses at the start of the step, also those of `window_impacts`, in the contact frames
        [N s]; None in runs without reports or windows.
    """

    v: Array
    spread: Array
    impulse: Vec3
    code: Array
    grip: Array | None = None
    window_impacts: SimultaneousImpacts | None = None
    residual: Array | float = 0.0
    start_impulses: Vec3 | None = None


class _StageResult(NamedTuple):
    """The result of the stages so far.

    stage: () the next stage: 0 the start of the step, 1 the step, 2 the step once more.
    V: (T + 1, w, *batch) velocities at the start of the step.
    p: (C, *batch) impulses of the last stage [N s].
    grip: (G, *batch) impulses of grips [N m s, N s]; None if there are none.
    free: (G, *batch) bool, grips that give way: they are not stopped at the start; None if there are none.
    slides: (C, *batch) bool, contacts whose friction is to oppose their mean slip.
    code: (*batch) result code.
    residual: (*batch) residual of the last stage [m/s].
    start_of_window: the start of a window; None in runs without windows.
    first: p of stage 0; None in runs without reports or windows.
    """

    stage: Array
    V: Array
    p: Vec3
    grip: Array | None
    free: Array | None
    slides: Array
    code: Array
    residual: Array
    start_of_window: WindowStart | None = None
    first: Vec3 | None = None


def solve(
    model: Model,
    contacts: Contacts,
    rows: ContactJacobian,
    v: Array,
    v_free: Array,
    h: Array | float,
    midway: Midway,
    grips: Grips | None = None,
    window: Array | None = None,
) -> Rest:
    """Solve for all resting contacts together.

    v: (*batch, nv) velocities at the start.
    v_free: (*batch, nv) velocities that the step would end with if there were no contacts.
    h: length of the step [s].
    midway: the contacts in the middle of the step.
    grips: joint friction and rigid motors; None: there are none.
    window: (*batch) whether the step is a window; None: no step is.
    """
    trees = trees_of(model.topology)
    V, change = to_blocks(trees, v), to_blocks(trees, v_free - v)
    u_n = relative_velocity(rows, V).z
    now = phases(model, contacts, u_n)
    gap = jnp.where(contacts.active, contacts.gap, 0)  # infinite gaps have no derivative in reverse mode
    end_target = target_velocity(model, gap_to_close(model, gap, now.resting), h)
    least_speed = jnp.broadcast_to(model.gap_band, contacts.code.shape) / STEP
    # stage 0, if needed: contacts that close are stopped; stage 1: resting contacts carry their load over the step
    stops = stopped_at_start(model, contacts, u_n).any(0)
    if grips is not None:
        stops = stops | grips.stops.any(0)  # a joint that is stopped may push into a contact
    touching = (now.resting | (contacts.active & (contacts.gap <= model.gap_band))) & stops
    none, grip = jnp.zeros_like(u_n), None
    targets, resting = None, now.resting
    if window is not None:
        targets = WindowTargets.of(model, contacts, u_n, h, window)
        end_target, resting = jnp.where(window, targets.end, end_target), resting | targets.may_touch
        stops = jnp.where(window, targets.closes.any(0) | (False if grips is None else grips.stops.any(0)), stops)
        touching = jnp.where(window, targets.may_touch, touching)
    if grips is not None:
        grip = grips.push
        change = change + apply_impulses(grips.rows, jnp.zeros_like(V), Vec3(grip, grip * 0, grip * 0))
        # within the band no contact is pushed out: a held joint would push against it with its full effort
        end_target = jnp.where(contacts.gap < -model.gap_band, end_target, jnp.minimum(end_target, 0))

    def solve_stage(given: Any, state_so_far: _StageResult) -> _StageResult:
        model, contacts, rows, V_0, midway, grips, change, end_target, speeds, resting, touching, targets = given
        least_speed, at_rest = speeds
        stage, V, _, grip, free, slides, code, _, start_of_window, first = state_so_far
        step = stage > 0  # else: the start of the step
        u = midway.frame @ (contacts.frame.T @ relative_velocity(rows, V))
        here: ContactJacobian = map_to_last(_select_rows, contacts.active, step, (midway.rows, rows), AT_ONCE)
        here = here._replace(drift=here.drift + midway.bias * jnp.where(step, 1, 0))
        active = jnp.where(step, resting, touching)
        start = V + jnp.where(step, change, 0)
        target = jnp.where(step, end_target, 0 if start_of_window is None else start_of_window.start_target(targets))
        slip, turning = (x.x * x.x + x.y * x.y for x in (u, midway.bias * 2))
        sticks = slip <= jnp.maximum(turning, (SLOW * model.rest_speed) ** 2)  # no faster than the change in the step
        doubled = Vec3(jnp.where(slides, u.x, 0), jnp.where(slides, u.y, 0), jnp.zeros_like(u.z))  # u(h) + u(0)
        doubled_rows = here._replace(drift=here.drift + doubled)
        problem = doubled_rows, start, target, contacts.friction, active, slides
        tolerance = None if targets is None else targets.tolerance
        system: tuple[Any, ...] = problem
        if grips is not None and free is not None:
            system = append_grips(grips, free, step, problem)
        conflict = CONFLICT * jnp.maximum(jnp.where(active, jnp.abs(target), 0).max(0, initial=0), least_speed)
        conflict = conflict if targets is None else jnp.where(targets.is_window, 0, conflict)
        solved = solve_cone(
            *system,
            velocity_tolerance=tolerance,
            sticks=_pad_with_false(sticks & ~slides, system[2]),
            conflict_tolerance=conflict,
            moves=_of_moving_trees(system[0], V, at_rest),
            start=_begin(midway, h, step & targets.is_window, len(system[2])) if targets is not None else None,
        )
        p = jax.tree.map(lambda x: jnp.where(active, x[: len(active)], 0), solved.p)
        after = relative_velocity(here, solved.V)
        slides = (stage == 1) & resting & _slip_rotates(model, contacts.friction, u, after, p)
        code, residual = gravest(code, solved.code), solved.residual
        if first is not None:
            first = jax.tree.map(lambda old, new: jnp.where(step, old, new), first, p)
        next_stage, V = stage + 1, jnp.where(step, V, solved.V)
        if grips is not None and free is not None:
            own = solved.p.x[len(active) :]
            grip = jnp.where(step, grips.push, 0) + own
            loose = give_way(grips, own) & (stage == 1)
            again = loose.any() & ~free.any()  # once more from the start, without stopping them
            next_stage, V, free = jnp.where(again, 0, next_stage), jnp.where(again, V_0, V), free | (loose & again)
        result = _StageResult(next_stage, V, p, grip, free, slides, code, residual, None, first)
        if start_of_window is None or targets is None:
            return result
        start_of_window, again = start_of_window.after_solve(step, targets, SimultaneousImpacts(u, after, p))
        stage, V = jnp.where(again, stage, result.stage), jnp.where(again, V, result.V)
        return result._replace(stage=stage, V=V, slides=slides & ~targets.is_window, start_of_window=start_of_window)

    first_stage = jnp.where(stops.any(), 0, 1)
    start_of_window = None if window is None else WindowStart.none(none)
    code, residual = jnp.zeros_like(contacts.code), jnp.zeros(contacts.code.shape, V.dtype)
    nothing = Vec3(none, none, none)
    first = None if midway.point is None and window is None else nothing
    free = None if grips is None else grips.stops & False
    start = _StageResult(
        first_stage, V, nothing, grip, free, now.resting & False, code, residual, start_of_window, first
    )
    at_rest = MOVES * jnp.linalg.norm(model.gravity, axis=-1) * h
    speeds = least_speed, at_rest
    given = model, contacts, rows, V, midway, grips, change, end_target, speeds, resting, touching, targets
    most = (3 if window is None else 4) + (0 if grips is None else 2)
    end = loop(most, lambda _, x: (x.stage < 2) | ((x.stage == 2) & x.slides.any()), solve_stage, given, start)
    _, V, p, grip, _, _, code, residual, start_of_window, first = end
    spread = joint_impulses(midway.rows, p, trees.n + 1)
    if grips is not None:
        spread = spread + joint_impulses(grips.rows, Vec3(grip, grip * 0, grip * 0), trees.n + 1)
    struck = None if start_of_window is None else start_of_window.impacts
    return Rest(from_blocks(trees, V), from_blocks(trees, spread), p, code, grip, struck, residual, first)


def _select_rows(step: Array, both: tuple[ContactJacobian, ContactJacobian]) -> ContactJacobian:
    """Return the first rows where step (*batch) is true, else the second."""
    return jax.tree.map(lambda x, y: jnp.where(step, x, y), *both)


def _begin(midway: Midway, h: Array | float, warm: Array, n: int) -> Vec3 | None:
    """Return the impulses (n, *batch) with which the search begins, 0 in lanes without a warm start [N s]."""
    if midway.load is None:
        return None

    def pad_impulse(force: Array) -> Array:
        force = jnp.where(warm, force * h, 0)
        return jnp.concatenate([force, jnp.zeros_like(force, shape=(n - len(force), *force.shape[1:]))])

    return jax.tree.map(pad_impulse, midway.load)


def _pad_with_false(x: Array, like: Array) -> Array:
    """Return x with False appended, as long as `like`."""
    return jnp.concatenate([x, jnp.zeros((len(like) - len(x), *x.shape[1:]), bool)])


def _of_moving_trees(rows: ContactJacobian, V: Array, at_rest: Array) -> Array:
    """Return whether one of the trees of a contact moves faster than `at_rest` (*batch), (C, *batch)."""
    speeds = gather_trees(rows, jnp.abs(V).max(1, keepdims=True)).max((1, 2))
    return speeds > at_rest


def stopped_at_start(model: Model, contacts: Contacts, u_n: Array) -> Array:
    """Return contacts (C, *batch) that close at the start of a step and are stopped there.  u_n: (C, *batch) [m/s]."""
    now = phases(model, contacts, u_n)
    return now.impact | (now.resting & (u_n < -SLOW * model.rest_speed))


def _slip_rotates(model: Model, mu: Array, before: Vec3, after: Vec3, p: Vec3) -> Array:
    """Return whether a contact slides all through the step and its slip changes direction, (C, *batch).

    before, after: slip at both ends [m/s].
    p: impulses over the step [N s].

    A contact that slips at the end faster than the rest speed slides for any p. The friction of a corner without load
    is 0 up to rounding, so p does not tell. The corner may bear a load in the second solve.
    """
    most, used = mu * p.z, jnp.sqrt(p.x * p.x + p.y * p.y)
    first, last = before.x * before.x + before.y * before.y, after.x * after.x + after.y * after.y
    rotates = jnp.abs(before.x * after.y - before.y * after.x) > LEAST_ROTATION * jnp.sqrt(first * last)
    least = model.rest_speed * model.rest_speed
    slides = (first > least) & ((last > least) | (used >= most * FULL))
    return rotates & slides & (before.x * after.x + before.y * after.y > 0)
