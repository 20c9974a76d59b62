"""Time control: how long a step to try, and what to make of where it led (Holck 2.3: the module that rolls back).

A step ends where something touches: deeper than the gap band, and still closing, is too far. Then the whole lane goes
back to its accepted state and tries the time at which the deepest pairs passed through touching, which is known well
from how fast they close there and how fast that changed on the way. Every rejected step is longer than the time
looked for; where the guess is of no use, the step is halved. Once the gap is within the band, the state is accepted.

Steps also end where a slide stops, because friction is not smooth there.

Events may pile up: impacts whose intervals shrink towards nothing, or predictions that lead nowhere. After `STALLED`
accepted steps in a row that are too short to be useful, whatever still closes is stopped together without bounce, as
simultaneous impacts are with a restitution of 0, and the code says so: a run never stands still.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..contact.contacts import Contacts
from ..contact.determine import ENVELOPE
from ..contact.rows import Rows, relative
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.results import NOT_FINITE, OK, TOUCH_UNFINISHED
from .lanes import Lane, Search
from .motion.forces import column
from .proposal import SLIDES, Proposal
from .rules import Rules

GUESSES = 6  # rejected steps after which steps are halved
MOST = 60  # rejected steps after which a step is taken whatever it meets
USEFUL = 1e-6  # of the longest step: a shorter one is of no use
STALLED = 100  # of these in a row


class Verdict(NamedTuple):
    """accepted: (*batch).  search: from here on.  code: (*batch) what is wrong with the step."""

    accepted: Array
    search: Search
    code: Array


def step_to_try(lane: Lane, max_dt: Array) -> Array:
    """The next step (*batch) [s]."""
    left, rounding = lane.clock.left, 1 - 16 * jnp.finfo(lane.clock.left.dtype).eps
    longest, touch, high = stop_gradient((lane.ready.longest, lane.ready.touch, lane.search.high))
    aim, least = lane.search.aim, stop_gradient(_least(lane))
    even = left / jnp.ceil(left * rounding / max_dt)  # as many equal steps as it takes
    free = jnp.minimum(jnp.minimum(even, jnp.maximum(longest, USEFUL * max_dt)), touch)
    free = jnp.where(free >= high, high / 2, free)  # behind what is too deep there is nothing to see
    h = jnp.maximum(jnp.where(jnp.isfinite(aim), aim, free), least)
    return jnp.where(lane.fresh, 0, jnp.where(h >= left * rounding, left, h))


def stalled(lane: Lane) -> Array:
    """Whether the lane (*batch) has not got anywhere for a while."""
    return lane.search.short >= STALLED


def decide(
    rules: Rules, model: Model, lane: Lane, tried: Proposal, contacts: Contacts, rows: Rows, max_dt: Array
) -> Verdict:
    """Whether a proposal is accepted.

    contacts, rows: of its end.
    max_dt: () or (*batch), the longest step [s].
    """
    part, (model, lane, tried, contacts, rows) = tried.part, stop_gradient((model, lane, tried, contacts, rows))
    after, h, search = tried.state, tried.h, lane.search
    finite = jnp.isfinite(after.q).all(-1) & jnp.isfinite(after.v).all(-1)
    code = jnp.where(finite, OK, NOT_FINITE).astype(jnp.int32)
    if rules.time_control == "fixed":
        return Verdict(finite, Search.new(h), code)
    trees = trees_of(model.topology)
    u_n = relative(rows, to_blocks(trees, after.v)).z
    on_the_way = (after.v - lane.ready.state.v) / column(h)
    a_n = relative(rows._replace(drift=rows.drift * 0), to_blocks(trees, on_the_way)).z
    closes = contacts.active & (u_n < -model.rest_speed)
    deep = closes & (contacts.gap < -model.gap_band)
    since = _since(jnp.where(deep, -contacts.gap, 0), jnp.where(deep, -u_n, 1), jnp.where(deep, a_n, 0))
    before = lane.ready.contacts
    sunk = (before.active & (before.gap < -model.gap_band)).any(0)
    deep = deep & ~(sunk & (since >= h))  # what was too deep before the step is not to be looked for in it
    strikes = (closes & (contacts.gap <= model.gap_band)).any(0)
    too_deep, since = deep.any(0), jnp.where(deep, since, 0).max(0)
    back = jnp.where((since >= h) | (search.rejected >= GUESSES), h / 2, h - since)
    slid = (tried.part < 1) & (search.rejected < SLIDES) & ~too_deep
    last = (h <= 2 * _least(lane)) | (search.rejected >= MOST)
    accepted = finite & (last | ~(too_deep | slid))
    deeper = accepted & too_deep & (contacts.gap.min(0, initial=0) < -ENVELOPE * model.gap_band)
    # half the way there, what was too deep is looked at again: another way led to it, and it may no longer be
    ahead = jnp.where(strikes | (search.high <= 2 * h), jnp.inf, search.high - h)
    aim = jnp.where(too_deep, back, h * part)
    rejected = Search(jnp.where(too_deep, h, search.high), aim, search.rejected + 1, search.short)
    short = jnp.where(h < USEFUL * max_dt, search.short + 1, 0)
    new = Search.new(h)._replace(high=ahead, short=short)
    search = Search(*(jnp.where(accepted, x, y) for x, y in zip(new, rejected, strict=True)))
    return Verdict(accepted, search, jnp.where(deeper, TOUCH_UNFINISHED, code).astype(jnp.int32))


def _least(lane: Lane) -> Array:
    """The shortest step that is worth trying."""
    return 4 * jnp.finfo(lane.clock.left.dtype).eps * lane.clock.left


def _since(depth: Array, speed: Array, a: Array) -> Array:
    """How long ago the gap was 0: it is -depth, closes with speed > 0, and its rate changes with a."""
    square = speed * speed + 2 * a * depth
    return 2 * depth / (speed + jnp.sqrt(jnp.where(square > 0, square, 0)))
