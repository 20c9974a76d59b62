"""Resting and sliding contacts: the impulses that carry them over a step, found together.

A train of micro-collisions (Mirtich 1996, section 3.3; Holck 2.2.2) keeps a body on its support by impulses too small
and too many to follow. Over a step of length h they add up to one impulse p a contact, which is what is solved for:

    u(h) = J (v + h a) + W p + h/2 dJ/dt v,   with J, W = J M^-1 J^T of the middle of the step
    0 <= p_n _|_ u_n(h) - goal >= 0,   Coulomb: |p_t| <= mu p_n, opposed to u_t(h)

J turns as bodies do: taken halfway, forces point where they point on average, and do no work on what does not slip.
The step then takes p/h as constant forces, so that positions see half of what velocities see: a block slides on an
exact parabola, a block that sticks stays. The goal closes the gap over some steps, -CLOSING gap/STEP, and no faster
than half the rest speed: what is too deep comes out slowly, still resting, and does not jump.

Slip turns. What slides through the whole step is solved for once more, with friction against the slip halfway,
(u(0) + u(h))/2: that is of order 2, where friction against the slip of the end is of order 1.

What touches too slowly to bounce, and what impacts left closing, is stopped at the start of the step, at once.

Joints that dry friction or a motor holds (`grips.py`) are solved for in the same systems.

Where the step is a window, what may touch before its end takes part from its start (`ahead.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.bounded import loop
from ...engine.algebra.vec3 import Mat3, Vec3
from ...engine.compaction import up_to_the_last
from ...engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ...engine.model import Model
from ...engine.results import gravest
from ..cone.solve import solve_cone
from ..contacts import Contacts
from ..determine import SLOW, phases
from ..events import Together
from ..grips import Grips, beside
from ..jacobian import ContactJacobian, apply_impulses, joint_impulses, relative_velocity
from .ahead import Ahead, Early
from .goals import STEP, aimed_at, to_close

ASKED = 0.3  # of the fastest that a gap is to close, or of a gap band a step: so far many may stay from the law
FULL = 1 - 1e-5  # of the friction there may be: what needs more slides all through the step
AT_ONCE = 32  # contacts: of so few all rows are chosen, also those of no contact
TURNED = 1e-9  # sine of the angle by which slip must turn for that to matter


class Midway(NamedTuple):
    """Contacts in the middle of a step.

    rows: theirs.
    left: (C, *batch) what u still gains from there on because J turns, half of h dJ/dt v, in these frames [m/s].
    frame: (C, *batch) their frames there.
    point: (C, *batch) where they are [m]; None where nobody asks what is pushed where.
    """

    rows: ContactJacobian
    left: Vec3
    frame: Mat3
    point: Vec3 | None = None


class Rest(NamedTuple):
    """What resting contacts do to a step.

    v: (*batch, nv) velocities to start the step with.  spread: (*batch, nv) joint impulses to spread over it
    [N m s, N s].  impulse: (C, *batch) of each contact on A, spread over it, in its frame midway [N s].
    code: (*batch).  grip: (G, *batch) impulses of what holds joints [N m s, N s]; None where nothing may.
    struck: what was struck at the start of a window; None where there are no windows.
    left: (*batch) by how much velocities at its end are off the law [m/s].
    first: (C, *batch) what stopped at its start was stopped by, in the contacts' frames [N s]; None where nobody asks.
    """

    v: Array
    spread: Array
    impulse: Vec3
    code: Array
    grip: Array | None = None
    struck: Together | None = None
    left: Array | float = 0.0
    first: Vec3 | None = None


class _Found(NamedTuple):
    """What was found so far.

    stage: () 0 before the instant at which the step starts, 1 before the step, 2 before it is solved once more.
    V: (T + 1, w, *batch) velocities to start the step with.
    p: (C, *batch) impulses of the last stage.
    grip: (G, *batch) the same of grips, None where there are none.
    slides: (C, *batch) bool, contacts whose friction is to oppose their slip halfway.
    code: (*batch).  left: (*batch) of the last stage [m/s].
    early: of windows; None where there are none.  first: p of stage 0; None where nobody asks.
    """

    stage: Array
    V: Array
    p: Vec3
    grip: Array | None
    slides: Array
    code: Array
    left: Array
    early: Early | None = None
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
    """All resting contacts together, for a step of length h [s] whose velocities would end at v_free (*batch, nv).

    midway: the contacts in the middle of the step.  grips: what may hold joints; None: nothing.
    window: (*batch) whether the step is a window; None: no step is.
    """
    trees = trees_of(model.topology)
    V, change = to_blocks(trees, v), to_blocks(trees, v_free - v)
    u_n = relative_velocity(rows, V).z
    now = phases(model, contacts, u_n)
    goal = aimed_at(model, to_close(model, contacts.gap, now.resting), h)
    faint = jnp.broadcast_to(model.gap_band, contacts.code.shape) / STEP
    # first, where it must be, all that closes at this instant is stopped; then what rests is carried
    stops = stopped(model, contacts, u_n).any(0)
    touching = (now.resting | (contacts.active & (contacts.gap <= model.gap_band))) & stops
    none, grip = jnp.zeros_like(u_n), None
    ahead, resting = None, now.resting
    if window is not None:
        ahead = Ahead.of(model, contacts, u_n, h, window)
        goal, resting = jnp.where(window, ahead.goal, goal), resting | ahead.takes_part
        stops = jnp.where(window, ahead.strikes.any(0), stops)
        touching = jnp.where(window, ahead.takes_part, touching)
    if grips is not None:
        stops, grip = stops | grips.stops, grips.push
        change = change + apply_impulses(grips.rows, jnp.zeros_like(V), Vec3(grip, grip * 0, grip * 0))
        # within the band nothing is pushed out: what a joint holds there would be, with all that the joint can hold
        goal = jnp.where(contacts.gap < -model.gap_band, goal, jnp.minimum(goal, 0))

    def instant(given: Any, so_far: _Found) -> _Found:
        model, contacts, rows, midway, grips, change, goal, faint, resting, touching, ahead = given
        stage, V, _, grip, slides, code, _, early, first = so_far
        step = stage > 0  # else the instant at which it starts
        u = midway.frame @ (contacts.frame.T @ relative_velocity(rows, V))
        here: ContactJacobian = up_to_the_last(_either, contacts.active, step, (midway.rows, rows), AT_ONCE)
        here = here._replace(drift=here.drift + midway.left * jnp.where(step, 1, 0))
        active = jnp.where(step, resting, touching)
        start = V + jnp.where(step, change, 0)
        target = jnp.where(step, goal, 0 if early is None else early.target(ahead))
        slip, turn = (x.x * x.x + x.y * x.y for x in (u, midway.left * 2))
        sticks = slip <= jnp.maximum(turn, (SLOW * model.rest_speed) ** 2)  # no faster than the step makes it
        doubled = Vec3(jnp.where(slides, u.x, 0), jnp.where(slides, u.y, 0), jnp.zeros_like(u.z))  # u(h) + u(0)
        met = here._replace(drift=here.drift + doubled)
        asked: Any = met, start, target, contacts.friction, active, slides
        rough = None if ahead is None else ahead.rough
        system = asked if grips is None else beside(grips, step, asked)
        wish = ASKED * jnp.maximum(jnp.where(active, jnp.abs(target), 0).max(0, initial=0), faint)
        wish = wish if ahead is None else jnp.where(ahead.here, 0, wish)
        solved = solve_cone(*system, rough=rough, sticks=_padded(sticks & ~slides, system[2]), asked=wish)
        if grips is not None:
            grip = jnp.where(step, grips.push, 0) + solved.p.x[len(active) :]
        p = jax.tree.map(lambda x: jnp.where(active, x[: len(active)], 0), solved.p)
        after = relative_velocity(here, solved.V)
        slides = (stage == 1) & resting & _slides_through(model, contacts.friction, u, after, p)
        code, left = gravest(code, solved.code), solved.left
        if first is not None:
            first = jax.tree.map(lambda old, new: jnp.where(step, old, new), first, p)
        found = _Found(stage + 1, jnp.where(step, V, solved.V), p, grip, slides, code, left, None, first)
        if early is None or ahead is None:
            return found
        early, again = early.after(step, ahead, Together(u, after, p))
        stage, V = jnp.where(again, stage, found.stage), jnp.where(again, V, found.V)
        return found._replace(stage=stage, V=V, slides=slides & ~ahead.here, early=early)

    begin = jnp.where(stops.any(), 0, 1)
    early = None if window is None else Early.none(none)
    code, left = jnp.zeros_like(contacts.code), jnp.zeros(contacts.code.shape, V.dtype)
    nothing = Vec3(none, none, none)
    first = None if midway.point is None else nothing
    start = _Found(begin, V, nothing, grip, now.resting & False, code, left, early, first)
    given = model, contacts, rows, midway, grips, change, goal, faint, resting, touching, ahead
    most = 3 if window is None else 4
    end = loop(most, lambda _, x: (x.stage < 2) | ((x.stage == 2) & x.slides.any()), instant, given, start)
    _, V, p, grip, _, code, left, early, first = end
    spread = joint_impulses(midway.rows, p, trees.n + 1)
    if grips is not None:
        spread = spread + joint_impulses(grips.rows, Vec3(grip, grip * 0, grip * 0), trees.n + 1)
    struck = None if early is None else early.struck
    return Rest(from_blocks(trees, V), from_blocks(trees, spread), p, code, grip, struck, left, first)


def _either(step: Array, both: tuple[ContactJacobian, ContactJacobian]) -> ContactJacobian:
    """The first rows where step (*batch), else the second."""
    return jax.tree.map(lambda x, y: jnp.where(step, x, y), *both)


def _padded(x: Array, like: Array) -> Array:
    """With False behind it."""
    return jnp.concatenate([x, jnp.zeros((len(like) - len(x), *x.shape[1:]), bool)])


def stopped(model: Model, contacts: Contacts, u_n: Array) -> Array:
    """Contacts (C, *batch) that close at the start of a step, and are stopped there at once.  u_n: (C, *batch)."""
    now = phases(model, contacts, u_n)
    return now.impact | (now.resting & (u_n < -SLOW * model.rest_speed))


def _slides_through(model: Model, mu: Array, before: Vec3, after: Vec3, p: Vec3) -> Array:
    """Whether slip goes on all through the step and turns on the way, (C, *batch).

    before, after: slip at both ends.  p: impulses over the step.

    What still slips at the end as fast as it must at the start slides whatever p says: of a corner without load, whose
    friction is 0 up to rounding, p says nothing. But it may be loaded when the step is solved once more.
    """
    most, used = mu * p.z, jnp.sqrt(p.x * p.x + p.y * p.y)
    first, last = before.x * before.x + before.y * before.y, after.x * after.x + after.y * after.y
    turned = jnp.abs(before.x * after.y - before.y * after.x) > TURNED * jnp.sqrt(first * last)
    least = model.rest_speed * model.rest_speed
    slides = (first > least) & ((last > least) | (used >= most * FULL))
    return turned & slides & (before.x * after.x + before.y * after.y > 0)
