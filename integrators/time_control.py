"""Time control: the choice of the step to try, and the decision to accept it (Holck 2.3: the module that rolls back).

A step must end when something touches. A contact that is deeper than the gap band and still closes shows that the step
was too long. The lane then goes back to its accepted state and tries the time at which the deepest pairs began to
touch, estimated from the speed at which they close and its change during the step. Every rejected step is longer than
the time of impact; if the estimate is useless, the step is halved. Once the gap is within the band, the state is
accepted.

Steps also end when a slide stops, because friction is not smooth there. If resting contacts do not touch at the end of
a step, the end is corrected, or a shorter step is taken if the error is large (`correction.py`).

Events may accumulate: impacts at shrinking intervals, or useless predictions. After `STALLED` accepted steps in a row
that are too short to make progress, all contacts that still close are stopped together without bounce, as simultaneous
impacts with restitution 0, and the result code says so. If that does not help, for example with a coin that rattles
ever faster, a growing least step is enforced. Bodies may then overlap by as much as they move in this step, and the
result code says so too. So a run always ends.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..collision.passage import clearance_used
from ..contact.contact_jacobian import ContactJacobian, relative_velocity
from ..contact.contacts import Contacts
from ..contact.determine import ENVELOPE
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.loops.forward import exact as exactly_held
from ..engine.model import Model
from ..engine.results import BLOCKED, LOOPS_OPEN, OK, TOUCH_UNFINISHED, finite_code
from .contact_error import ExpectedContacts, contact_errors, since_return
from .correction import correct_step_end
from .lanes import Lane, Search
from .prepare import sparse_shapes
from .proposal import SLIDES, Proposal
from .rules import Rules
from .schemes import bend
from .window import after_window, in_window

GUESSES = 6  # rejected steps after which steps are halved
MOST = 60  # rejected steps after which a step is accepted in any case
CORRECTIONS = 2  # most corrections of the end of one step
SAFE = 0.9  # part of the step that would just be accurate enough
SHORTER, LONGER = 1 / 4, 2.0  # least and largest ratio of a step to the one before
SHORTEST = 1 / 64  # part of the longest step: contact errors make no step shorter
LOOP_DRIFT = 1e-3  # part of a tree's velocity: largest velocity that may close its loops after a step
BRIEFEST = 1 / 4096  # part of the longest step: loops make no step shorter
LEAST_STEP = 1e-6  # part of the longest step: a shorter step makes no progress
STALLED = 100  # steps without progress in a row, after which contacts that close are stopped without bounce
ANYWAY = 10  # further steps without progress, each accepted and at least twice as long as the one before
BLOCKED_STEPS = 10  # steps without progress in a row, in which what closes is not stopped
LEFT = 0.1  # [s] a resting contact that leaves an overlap in this time at the rest speed needs no window
SURE = 0.9  # part of the step that uses up the clearance of a pair


class Verdict(NamedTuple):
    """The decision about a step.

    accepted: (*batch) whether it is accepted, for all clocks.
    search: the search from now on.
    code: (*batch) result code of the step.
    u_n: (C, *batch) normal velocities of the contacts at its end [m/s].
    partner: see `ContactErrors`; None with fixed steps.
    """

    accepted: Array
    search: Search
    code: Array
    u_n: Array
    partner: tuple[Array, Array] | None = None


def step_to_try(lane: Lane, max_dt: Array) -> tuple[Array, Array | None]:
    """Return the next step of each clock [s], and whether it is a window (None in runs without windows)."""
    left, rounding = lane.clock.left, 1 - 16 * jnp.finfo(lane.clock.left.dtype).eps
    longest, high = stop_gradient((lane.ready.longest, lane.search.high))
    touch, aim, least = lane.ready.touch, lane.search.aim, stop_gradient(_least(lane, max_dt))
    even = left / jnp.maximum(jnp.ceil(left * rounding / max_dt), 1)  # equal steps up to the next frame
    longest = jnp.maximum(longest, LEAST_STEP * max_dt)
    free = jnp.minimum(jnp.minimum(even, longest), touch)
    free = jnp.minimum(free, lane.search.fine)
    free = jnp.where(free >= high, high / 2, free)  # shorter than a step that led to an overlap
    h = jnp.maximum(jnp.where(jnp.isfinite(aim), aim, free), least)
    return in_window(lane, jnp.where(lane.fresh, 0, jnp.where(h >= left * rounding, left, h)), longest)


def is_stalled(lane: Lane) -> Array:
    """Return whether each clock has made no progress for STALLED steps."""
    return lane.search.short >= STALLED


def decide(
    rules: Rules,
    model: Model,
    lane: Lane,
    tried: Proposal,
    contacts: Contacts,
    rows: ContactJacobian,
    expected: ExpectedContacts,
    max_dt: Array,
) -> Verdict:
    """Decide whether a proposal is accepted.

    contacts, rows: contacts at its end, and their Jacobian.
    expected: expected motion of the contacts that the step began with.
    max_dt: () or (*batch), the longest step [s].
    """
    # what has a derivative: where a slide ends, and corrections
    part, length = tried.part, tried.h
    moving = model, lane.clocks, lane.search.correction, tried, contacts, rows
    model, lane, tried, contacts, rows = stop_gradient((model, lane, tried, contacts, rows))
    after, h, search, clocks = tried.state, tried.h, lane.search, lane.clocks
    each = functools.partial(clocks.of_contacts, rows.tree)
    contacts = clocks.under_way(rows.tree, contacts, h, lane.fresh)
    code = _code_of(lane, tried)
    finite = code == OK
    none = Search.new(h, search.correction, search.window)
    trees = trees_of(model.topology)
    u = relative_velocity(rows, to_blocks(trees, after.v))
    if rules.time_control == "fixed":
        return Verdict(finite, none, code, u.z)
    u_n = u.z
    on_the_way = (after.v - lane.ready.state.v) / clocks.of_dofs(model.topology, h)
    a_n = relative_velocity(rows.still, to_blocks(trees, on_the_way)).z
    errors = contact_errors(rules, model, lane, tried, expected, contacts, rows, u)
    carries = finite & ~lane.fresh & (search.correction.times < CORRECTIONS) & (rules.resting == "solve")
    closes = contacts.active & (u_n < -model.rest_speed)
    deep = closes & (contacts.gap < -model.gap_band) & ~(errors.normal & each(carries))
    bent = bend(rules.scheme)
    rate = u_n + (bent - 1) * each(h) * a_n  # rate of the gap at the end with the length of the step
    since = _since(jnp.where(deep, -contacts.gap, 0), jnp.where(deep, -rate, 1), jnp.where(deep, bent * a_n, 0))
    since = since_return(model, lane, h, contacts, rows, u_n, deep, since)
    before = lane.ready.contacts
    sunk = each(clocks.most(lane.ready.rows.tree, jnp.where(before.active, -before.gap, 0)))
    as_deep = (sunk > model.gap_band) & (-contacts.gap <= sunk + ENVELOPE * model.gap_band)
    deep = deep & ~(as_deep & (since >= each(h)))  # a contact that was too deep before the step gives no time of impact
    # overlapping corners that move out again; contacts that the step carried are corrected instead
    put = errors.normal & (each(carries) | ~errors.lifts)
    out = contacts.active & ~closes & (-contacts.gap > jnp.maximum(sunk, ENVELOPE * model.gap_band)) & ~put
    deep, since = deep | out, jnp.where(out, jnp.inf, since)
    strikes = clocks.any(rows.tree, closes & (contacts.gap <= model.gap_band))
    too_deep, since = clocks.any(rows.tree, deep), clocks.most(rows.tree, jnp.where(deep, since, 0))
    back = jnp.where((since >= h) | (search.rejected >= GUESSES), h / 2, h - since)
    slid = (tried.part < 1) & (search.rejected < SLIDES) & ~too_deep
    if tried.window is not None:
        carries, too_deep, slid = (x & ~tried.window for x in (carries, too_deep, slid))
    carries = carries & ~too_deep & ~slid
    first = carries & (search.correction.times == 0)
    error, briefest = jnp.where(first, errors.rough, 0), SHORTEST * max_dt
    if tried.loop_drift is not None:
        drift = jnp.where(lane.fresh | (search.correction.times > 0), 0, tried.loop_drift / LOOP_DRIFT)
        drift = jnp.where(finite, drift, jnp.inf)
        briefest = jnp.where(drift > error, BRIEFEST * max_dt, briefest)
        error = jnp.maximum(error, drift)
    rough = (error > 1) & (h > briefest)
    change = jnp.clip(SAFE / jnp.sqrt(jnp.sqrt(error)), SHORTER, LONGER)  # order 4
    # a step that was accurate enough may be so for the next one too; it may have been short for another reason
    fine = jnp.where(change < 1, change * h, jnp.maximum(search.fine, change * h))
    fine = jnp.maximum(fine, briefest)
    fine = jnp.where(search.correction.times == 0, fine, search.fine)
    again = carries & errors.much & ~rough
    passed, sure = _check_passage(rules, model, lane, tried, max_dt, again)
    if tried.loop_drift is not None:  # also in windows
        sure = jnp.where(rough, jnp.minimum(sure, fine), sure)
    last = (h <= 2 * _least(lane, max_dt)) | (search.rejected >= MOST)
    own = finite & ~again & (last | ~(too_deep | slid | rough | passed))
    if exactly_held(model.topology):  # such scenes have one clock
        code = jnp.where(own & _is_blocked(model, lane, closes), BLOCKED, code)
        own = own & (code != BLOCKED)
    accepted = clocks.of_all(own)
    deepest = clocks.least(rows.tree, jnp.where(contacts.active, contacts.gap, 0), 0)
    deeper = own & too_deep & (deepest < -ENVELOPE * model.gap_band)
    # after half the way to an overlap it is dropped and checked again: the motion has changed, and it may not occur
    ahead = jnp.where(strikes | (search.high <= 2 * h), jnp.inf, search.high - h)
    short = jnp.where(h < jnp.where(is_stalled(lane), 2**ANYWAY, 1) * LEAST_STEP * max_dt, search.short + 1, 0)
    short = jnp.where(h == 0, search.short, short) if clocks.each() else short  # a tree that waits is not stalled
    inside = h < lane.clock.left  # a frame does not depend on earlier ones
    new = none._replace(
        high=jnp.where(inside, ahead, jnp.inf),
        short=jnp.where(inside, short, 0),
        fine=jnp.where(inside & (fine < max_dt), fine, jnp.inf),
    )
    rejected = none._replace(
        high=jnp.where(too_deep, h, search.high),
        aim=jnp.minimum(jnp.where(too_deep, back, jnp.where(rough, fine, length * part)), sure),
        rejected=search.rejected + 1,
        short=search.short,
        fine=jnp.minimum(jnp.where(rough, fine, search.fine), sure),
    )
    correct = lambda: correct_step_end(*moving, errors, again)  # noqa: E731
    correction = jax.lax.cond(again.any(), correct, lambda: moving[2])
    repeated = search._replace(aim=length, correction=correction, fine=fine)
    refused = jax.tree.map(functools.partial(clocks.either, again), repeated, rejected)
    if clocks.each():  # a tree whose step is acceptable keeps it and waits for the others
        refused = jax.tree.map(functools.partial(clocks.either, own), search._replace(aim=length), refused)
    search = jax.tree.map(lambda x, y: jnp.where(accepted, x, y), new, refused)
    sunk = contacts.active & (contacts.gap < -ENVELOPE * model.gap_band)
    deep = sunk & (closes | (contacts.gap < -LEFT * model.rest_speed))
    search = after_window(lane, search, tried.window, accepted, strikes, sunk.any(0), deep.any(0), sure)
    if search.window is not None:  # windows may have left an overlap at the start of a run
        deeper = deeper & ~search.window.open & ~(lane.fresh & (deepest > -LEFT * model.rest_speed))
    deeper = accepted & (deeper.any() if clocks.each() else deeper)
    if tried.loop_drift is not None:  # if loops diverge, a shorter step is tried
        code = jnp.where(rough & (code != BLOCKED), OK, code)
    code = jnp.where(deeper, TOUCH_UNFINISHED, code)
    return Verdict(accepted, search, code, u_n, errors.partner)


def _code_of(lane: Lane, tried: Proposal) -> Array:
    """Return the code that stops a lane if no shorter step helps."""
    code = finite_code(tried.state.q, tried.state.v)
    if tried.loop_drift is None:
        return code
    return jnp.where((tried.code == LOOPS_OPEN) & (lane.search.correction.times == 0), LOOPS_OPEN, code)


def _is_blocked(model: Model, lane: Lane, closes: Array) -> Array:
    """Return whether what loops hold presses against what cannot give way (*batch): contacts that closed at the start
    of a short step were stopped there, and close at its end (`closes`) because the loops are held.
    """
    before = lane.ready.contacts
    closed = before.active & (lane.ready.u.z < -model.rest_speed) & (before.gap <= model.gap_band)
    return (lane.search.short >= BLOCKED_STEPS) & closed.any(0) & closes.any(0)


def _check_passage(
    rules: Rules, model: Model, lane: Lane, tried: Proposal, max_dt: Array, again: Array
) -> tuple[Array, Array]:
    """Return whether links of trees may have passed through something in the step (*batch), and the step to try then.

    This step is inf if they did not [s]. Steps whose end is to be corrected are checked after the correction.
    """
    h, clearances = tried.h, lane.ready.clearances
    no = jnp.zeros(h.shape, bool), jnp.full_like(h, jnp.inf)
    if clearances is None:
        return no

    def look() -> tuple[Array, Array]:
        used = clearance_used(model, lane.ready.state, tried.state, h, clearances, sparse_shapes(rules, model))
        passed = (used > 1) & (h > LEAST_STEP * max_dt) & ~again
        return passed, jnp.maximum(safe_div(SURE * h, used, passed, jnp.inf), LEAST_STEP * max_dt)

    return jax.lax.cond(again.all(), lambda: no, look)


def _least(lane: Lane, max_dt: Array) -> Array:
    """Return the shortest step that is tried."""
    left = lane.clock.left
    least = 4 * jnp.finfo(left.dtype).eps * left
    on = jnp.clip(lane.search.short - STALLED, 0, ANYWAY).astype(left.dtype)
    return jnp.where(is_stalled(lane), jnp.maximum(jnp.minimum(LEAST_STEP * max_dt * 2**on, left), least), least)


def _since(depth: Array, speed: Array, a: Array) -> Array:
    """Return the time since the gap was 0: it is -depth now, closes with speed > 0, and its rate changes with a."""
    square = speed * speed + 2 * a * depth
    divisor = speed + safe_sqrt(square)
    return safe_div(2 * depth, divisor, otherwise=jnp.inf)
