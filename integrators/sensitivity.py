"""What is seen at the end of a step, and what derivatives are: the time of an impact moves with all it depends on.

A step that ends where something strikes ends at the root of a gap, g(h, x) = 0, whatever search found it. The search
has no derivative here (`time_control.py`); its result has, by the implicit function theorem: with g' = u_n the rate at
which the gap closes and dg what the gap changes by at fixed h,

    dh = -dg / u_n

and the end moves on by dh along the flow. The velocities then jump by the law of impact, and the rest of the run
starts dh later. Together that is the saltation matrix of hybrid systems (Aizerman and Gantmacher 1958; Leine and
Nijmeijer 2004, section 8.4), which is written nowhere: the chain rule makes it of these three.

A step that ends where a joint's dry friction, or a rigid motor, stops it ends at the root of its rate less what is
wanted: dh = -dv / a. So it is with all else.

Several islands may strike in one tick, each at a time of its own, though these times are equal. Then each has a dh of
its own. The clock takes one of them; what is behind the clock by the difference (`Lane.late`) catches up by the end of
the next step, along its flow there. Where several contacts of one island strike, the one that closes fastest sets its
time, as it is resolved first.

A window looks for no times, so that runs with windows are refused.

The derivative takes much for constant that is not (which contacts there are, how long other steps are): it has
no derivative itself, and says so.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient

from ..collision.bounds import bounding_spheres, inradius
from ..collision.broad import ALL_PAIRS
from ..collision.detect import look_around
from ..collision.proximities import Proximities
from ..collision.speeds.shape_speeds import shape_speeds
from ..contact.approach import near_enough
from ..contact.contacts import Contacts
from ..contact.determine import SIGHT, determine, phases
from ..contact.grips import lock_dofs
from ..contact.indexing import gather
from ..contact.jacobian import ContactJacobian, contact_jacobian, drop_immovable, relative_velocity
from ..engine.algebra.bounded import differentiated_once, filled, is_zero
from ..engine.dynamics.kinematics import coordinate_rates
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from .islands import islands
from .islands_asleep import dofs_asleep, shapes_still
from .lanes import Lane
from .motion.forces import acceleration
from .proposal import Proposal
from .rules import Rules

AHEAD, ASIDE = 4.0, 0.05  # longest steps at the present speed, and bounding radii, that a shape looks ahead
BEYOND = 1.25  # longest steps at the present speed that it may go unseen; and half its bounding radius at most
THIN = 1 / 8  # bounding radii: what is thinner is taken for as thick


def search_range(q: Array) -> float:
    """Gap bands within which a step looks for the contacts that it carried."""
    return SIGHT[q.dtype.itemsize]


class Detection(NamedTuple):
    """What there is at some coordinates.

    near: pairs that are near.  bounds: how far apart each pair is at least.  contacts: what touches.  rows: of these.
    reach: see `Looks`.
    """

    near: Proximities
    bounds: Proximities
    contacts: Contacts
    rows: ContactJacobian
    reach: Array | None


class DetectionRanges(NamedTuple):
    """How far shapes look about, (ns, *batch) [m].

    close: how near another must be to be looked at closely: what is farther must not shorten the next step, and what
        touches is nearer.
    reach: how far each may go before it is looked at again; None where every pair always is.
    off: (*batch) how near what may not touch is a contact all the same: one that the step carried.
    """

    close: Array
    reach: Array | None
    off: Array


def detection_ranges(
    model: Model, q: Array, v: Array, max_dt: Array, off: Array, apart: Array | None = None
) -> DetectionRanges:
    """At the coordinates q (*batch, nq) and the velocities v (*batch, nv).  off: see `Looks`.  apart: () for how long
    clocks of islands run apart [s]; None: there are none."""
    topology = model.topology

    def column(x: Array) -> Array:
        return jnp.moveaxis(x, -1, 0).reshape(x.shape[-1], *(1,) * (q.ndim - x.ndim), *x.shape[:-1])

    size = column(bounding_spheres(model).radius)
    size, speed = jnp.where(jnp.isfinite(size), size, 0), shape_speeds(model, q, v)
    ahead = speed * max_dt
    close = stop_gradient(ahead * AHEAD + ASIDE * size + search_range(q) * model.gap_band)
    moving = [k for k, link in enumerate(topology.shape_links) if link >= 0]
    if len(topology.pairs) <= ALL_PAIRS or not moving:
        return DetectionRanges(close, None, off)
    # the least of all inscribed balls, or a share of the size where that is thin; farther for what is fast
    own = jnp.maximum(column(inradius(model)), THIN * size)
    least = own[np.array(moving)].min(0) / 2
    reach = jnp.maximum(least, jnp.minimum(BEYOND * ahead, size / 2))
    if apart is not None:  # what does not come so far, falling, may go by a clock of its own (`clock_assignment.py`)
        reach = jnp.maximum(reach, BEYOND * (speed + jnp.linalg.norm(model.gravity) * apart) * apart)
    mobile = np.isin(np.arange(len(size)), moving).reshape(-1, *(1,) * (reach.ndim - 1))
    return DetectionRanges(close, stop_gradient(jnp.where(mobile, reach, 0)), off)


@functools.partial(jax.jit, static_argnums=0)  # traced once, however often it is asked for
def detect_and_determine(
    rules: Rules,
    model: Model,
    state: State,
    look: DetectionRanges,
    window: Array | None = None,
    island: Array | None = None,
) -> Detection:
    """At a state.  window: (*batch) what may touch within it is a contact [s].
    island: (T, *batch) who sleeps, see `islands_asleep.py`; None: nobody."""
    q, soon = state.q, jnp.minimum(look.off, search_range(state.q) * model.gap_band)
    shapes = None if island is None else shapes_still(model.topology, island)
    dofs = None if island is None else dofs_asleep(model.topology, island)
    with jax.named_scope("detect"):
        near, bounds = look_around(model, q, look.close, reach=look.reach, max_pairs=rules.max_pairs, still=shapes)
    with jax.named_scope("determine"):
        if window is not None:
            soon = jnp.maximum(soon, near_enough(*stop_gradient((model, q, state.v, near, window)), rules.limits))
        contacts = determine(
            model, q, near, max_contacts=rules.max_contacts, limits=rules.limits, reach=soon, still=dofs
        )
        rows = contact_jacobian(model, q, contacts)
        return Detection(near, bounds, drop_immovable(contacts, rows), rows, look.reach)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def detect_at_impact_time(
    rules: Rules, model: Model, lane: Lane, tried: Proposal, look: DetectionRanges, still: Array | None = None
) -> tuple[Proposal, Detection, Array]:
    """The end of a proposal, what is seen there, and `Lane.late` there. Where something strikes, the end is when it
    does.  still: (T, *batch) -1 of trees that are looked at; None: all are."""
    return tried, detect_and_determine(rules, model, tried.state, look, _window_length(lane), still), lane.late


def _window_length(lane: Lane) -> Array | None:
    return None if lane.search.window is None else lane.search.window.length


def _derivative(rules: Rules, primals: Any, tangents: Any) -> Any:
    model, lane, tried, look_within, still = differentiated_once(primals)
    if tried.window is not None:
        raise TypeError("a run in windows has no derivatives, since what strikes in one has no time: leave out window=")
    fields, tree = jax.tree.flatten(model)
    slopes = jax.tree.leaves(tangents[0], is_leaf=is_zero)
    varied = [k for k, d in enumerate(slopes) if not is_zero(d)]

    def look(q: Array, *own: Array) -> Detection:
        new = dict(zip(varied, own, strict=True))
        changed = jax.tree.unflatten(tree, [new.get(k, x) for k, x in enumerate(fields)])
        return detect_and_determine(rules, changed, replace(tried.state, q=q), look_within, _window_length(lane), still)

    d: Proposal = filled(tangents[2], tried)
    late = filled(tangents[1].late, lane.late)
    numbers, changes = [fields[k] for k in varied], [slopes[k] for k in varied]
    there, linear = jax.linearize(look, tried.state.q, *numbers)
    if rules.time_control != "fixed":  # there, steps end where they end
        gap = linear(jnp.zeros_like(d.state.q), *changes).contacts.gap if varied else None
        d, late = _shift_end(model, lane, tried, there, d, gap, late)
    return (tried, there, lane.late), (d, linear(d.state.q, *changes), late)


def _shift_end(
    model: Model, lane: Lane, tried: Proposal, there: Detection, d: Proposal, gap: Any, late: Array
) -> tuple[Proposal, Array]:
    """The changes d of a proposal, with its end moved on to where what strikes there touches; and `Lane.late`'s.

    gap: what the gaps (C, *batch) change by because surfaces do, at fixed q; None: they do not.
    late: (T, *batch) what `Lane.late` changed by.
    """
    state, trees, rows = tried.state, trees_of(model.topology), there.rows
    ready, h = lane.ready, jnp.where(lane.fresh, 1, tried.h)
    moving = model if tried.locked_dofs is None else lock_dofs(model, tried.locked_dofs)
    dv = acceleration(moving, state, h, ready.drive.motors, tried.spread)
    rates = coordinate_rates(model, state.q, state.v), dv
    u_n = relative_velocity(rows, to_blocks(trees, state.v)).z
    now = phases(model, there.contacts, u_n).impact & ~lane.fresh  # a run does not start before it does

    # what is late catches up
    change = _advance_trees(model, d.state, rates, late)
    # the time of each contact that strikes
    still = rows.still
    opens = relative_velocity(still, to_blocks(trees, _displacement(model, state.q, change.q))).z
    opens = opens if gap is None else opens + gap
    each = jnp.where(now, opens, 0) / jnp.where(now, -u_n, 1)
    # of each island the fastest one's, and of the clock the fastest one's of all
    dh = _fastest(now, u_n, each)
    touching = now | (there.contacts.active & (there.contacts.gap <= model.gap_band))
    ties = jnp.concatenate([rows.tree, ready.rows.tree]), jnp.concatenate([touching, tried.resting])
    island = islands(model.topology, *ties)
    of_contact = _island_of(island, rows.tree)
    mine = now[:, None] & (of_contact[:, None] == island)  # (C, T, *batch)
    own, some = jnp.where(mine.any(0), _fastest(mine, u_n[:, None], each[:, None]), dh), now.any(0)
    if tried.stops is not None:
        stops = jnp.moveaxis(tried.stops & ~lane.fresh[..., None], -1, 0)
        slopes, a = jnp.moveaxis(change.v, -1, 0), jnp.moveaxis(dv, -1, 0)
        each = jnp.where(stops, -slopes, 0) / jnp.where(stops, a, 1)
        dh = jnp.where(some, dh, _first_of(stops, each))
        theirs = stops[:, None] & (island[trees.block // trees.w][:, None] == island)  # (nv, T, *batch)
        held = jnp.where(theirs.any(0), _first_of(theirs, each[:, None]), dh)
        own, some = jnp.where(mine.any(0), own, held), some | stops.any(0)
    change = _advance_trees(model, change, rates, jnp.where(some, own, 0))
    return d._replace(state=State(change.q, change.v, d.state.t + dh), h=d.h + dh), dh - own


def _advance_trees(model: Model, d: State, rates: tuple[Array, Array], dt: Array) -> State:
    """Changes d of a state, each tree moved on by dt (T, *batch) along the flow."""
    topology, trees = model.topology, trees_of(model.topology)
    padded = jnp.concatenate([dt, jnp.zeros_like(dt, shape=(1, *dt.shape[1:]))])

    def moved(x: Array, rate: Array, start: tuple[int, ...]) -> Array:
        tree = np.repeat(trees.of_link[:-1], np.diff(start))
        each = jnp.moveaxis(padded[tree], 0, -1)
        return x + jnp.where(jnp.isfinite(rate), rate, 0) * each  # of a step not taken the rates may be anything

    return State(moved(d.q, rates[0], topology.q_start), moved(d.v, rates[1], topology.v_start), d.t)


def _fastest(now: Array, u_n: Array, each: Array) -> Array:
    """Of the contacts now (C, ...) the entry in `each` of the one that closes fastest; 0 if there is none."""
    speed = jnp.where(now, u_n, jnp.inf)
    first = jnp.argmin(speed, 0)
    here = now & (jnp.arange(len(now)).reshape(-1, *(1,) * (now.ndim - 1)) == first)
    return jnp.where(here, each, 0).sum(0)


def _first_of(now: Array, each: Array) -> Array:
    """The first entry in `each` of those that are now (n, ...); 0 if there is none."""
    return jnp.where(now & (jnp.cumsum(now, 0) == 1), each, 0).sum(0)


def _island_of(island: Array, tree: Array) -> Array:
    """(C, *batch) the island of each contact, by one of its trees that is not the world."""
    one = tree.min(1)  # the world is the last
    return gather(jnp.concatenate([island, jnp.full_like(island[:1], -1)]), one, 0)


def _displacement(model: Model, q: Array, dq: Array) -> Array:
    """The joint velocities (*batch, nv) whose coordinate rates at q are dq: those are orthogonal, but for lengths."""
    unit = jnp.ones((*q.shape[:-1], model.topology.nv), q.dtype)
    rates, back = jax.vjp(lambda v: coordinate_rates(model, q, v), unit)
    return back(dq)[0] / back(rates)[0]


detect_at_impact_time.defjvp(_derivative, symbolic_zeros=True)
