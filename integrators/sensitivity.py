"""Detection at the end of a step, and its derivative: the time of an impact depends on the state and the parameters.

A step that ends with an impact ends at the root of a gap, g(h, x) = 0. The search for it has no derivative
(`time_control.py`); the root has one, by the implicit function theorem. With g' = u_n the rate of the gap and dg its
change at fixed h,

    dh = -dg / u_n

and the end moves on by dh along the flow. The velocities then jump by the law of impact, and the rest of the run
starts dh later. Together this is the saltation matrix of hybrid systems (Aizerman and Gantmacher 1958; Leine and
Nijmeijer 2004, section 8.4). It is never formed: the chain rule composes it from these three.

A step that ends when dry friction or a rigid motor stops a joint ends at the root of the joint's velocity less its
target: dh = -dv / a.

Several islands may strike in one tick, at equal times that depend on different parameters. Each then has its own dh.
The clock takes one of them; an island that is behind the clock by the difference (`Lane.late`) catches up by the end of
the next step, along its flow there. If several contacts of one island strike, the one that closes fastest sets its
time, since it is resolved first.

A window searches for no impact times, so derivatives of runs with windows are refused.

The derivative treats the set of contacts and the length of the other steps as constant. It has no derivative itself: a
second one raises an error.
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
from ..collision.broad import pair_plan
from ..collision.detect import detect_with_bounds
from ..collision.proximities import Proximities
from ..collision.speeds.shape_speeds import shape_speeds
from ..contact.approach import touch_distances
from ..contact.contact_derivative import with_migration
from ..contact.contact_jacobian import ContactJacobian, drop_immovable, jacobian_at, relative_velocity
from ..contact.contacts import Contacts
from ..contact.determine import SIGHT, default_capacity, determine, phases
from ..contact.gather_scatter import gather
from ..contact.inner_corners import drop_inner_corners
from ..engine.algebra.bounded import differentiated_once, instantiate_zeros, is_zero
from ..engine.algebra.safe import safe_div
from ..engine.dynamics.kinematics import coordinate_rates
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from .islands import islands
from .islands_asleep import dofs_asleep, shapes_still
from .lanes import Lane
from .proposal import Proposal, propose
from .rules import Rules

AHEAD, ASIDE = 4.0, 0.05  # near pairs: distance in longest steps at the present speed, plus bounding radii
BEYOND = 1.25  # longest steps at the present speed that a shape may move between detections
THIN = 1 / 8  # bounding radii: a thinner shape counts as this thick


def search_range(q: Array) -> float:
    """Return the number of gap bands within which contacts that the step carried are detected."""
    return SIGHT[q.dtype.itemsize]


class Detection(NamedTuple):
    """The result of detection and contact determination at a state.

    near: pairs that are near.
    bounds: lower bounds of the distances of all pairs.
    contacts: contacts.
    rows: their Jacobian.
    reach: see `DetectionRanges`.
    """

    near: Proximities
    bounds: Proximities
    contacts: Contacts
    rows: ContactJacobian
    reach: Array | None


class DetectionRanges(NamedTuple):
    """Ranges of detection of each shape, (ns, *batch) [m].

    close: distance within which a pair goes through the narrow phase. Pairs beyond it must not limit the next step.
    reach: distance that each shape may move before the next broad phase; None if every pair is always checked.
    off: (*batch) gap below which a pair that does not touch is still a contact, because the step carried it.
    """

    close: Array
    reach: Array | None
    off: Array


def detection_ranges(
    rules: Rules, model: Model, q: Array, v: Array, max_dt: Array, off: Array, apart: Array | None = None
) -> DetectionRanges:
    """Return the ranges at the coordinates q (*batch, nq) and the velocities v (*batch, nv).

    off: see `DetectionRanges`.
    apart: () longest time between synchronizations of island clocks [s]; None: there is one clock.
    """
    topology = model.topology

    def column(x: Array) -> Array:
        return jnp.moveaxis(x, -1, 0).reshape(x.shape[-1], *(1,) * (q.ndim - x.ndim), *x.shape[:-1])

    size = column(bounding_spheres(model).radius)
    size, speed = jnp.where(jnp.isfinite(size), size, 0), shape_speeds(model, q, v)
    ahead = speed * max_dt
    close = stop_gradient(ahead * AHEAD + ASIDE * size + search_range(q) * model.gap_band)
    moving = [k for k, link in enumerate(topology.shape_links) if link >= 0]
    if not pair_plan(topology, rules.max_pairs).sifted or not moving:
        return DetectionRanges(close, None, off)
    # half the least inscribed radius of all shapes, or a part of the size of thin ones; more for fast shapes
    own = jnp.maximum(column(inradius(model)), THIN * size)
    least = own[np.array(moving)].min(0) / 2
    reach = jnp.maximum(least, jnp.minimum(BEYOND * ahead, size / 2))
    if apart is not None:  # a body that does not fall farther than this may have its own clock (`clock_assignment.py`)
        reach = jnp.maximum(reach, BEYOND * (speed + jnp.linalg.norm(model.gravity) * apart) * apart)
    mobile = np.isin(np.arange(len(size)), moving).reshape(-1, *(1,) * (reach.ndim - 1))
    return DetectionRanges(close, stop_gradient(jnp.where(mobile, reach, 0)), off)


@functools.partial(jax.jit, static_argnums=0)  # traced once for all its calls
def detect_and_determine(
    rules: Rules,
    model: Model,
    state: State,
    look: DetectionRanges,
    window: Array | None = None,
    island: Array | None = None,
) -> Detection:
    """Detect near pairs and contacts at a state.

    window: (*batch) pairs that may touch within this time are contacts [s].
    island: (T, *batch) trees that sleep, see `islands_asleep.py`; None: no tree sleeps.
    """
    q, soon = state.q, jnp.minimum(look.off, search_range(state.q) * model.gap_band)
    shapes = None if island is None else shapes_still(model.topology, island)
    dofs = None if island is None else dofs_asleep(model.topology, island)
    room = default_capacity(model.topology) if rules.max_contacts is None else rules.max_contacts
    with jax.named_scope("detect"):
        near, bounds = detect_with_bounds(
            model, q, look.close, reach=look.reach, max_pairs=rules.max_pairs, still=shapes, max_near=rules.max_near,
            max_touching=room,
        )  # fmt: skip
    with jax.named_scope("determine"):
        if window is not None:
            soon = jnp.maximum(soon, touch_distances(*stop_gradient((model, q, state.v, near, window)), rules.limits))
        contacts = determine(model, q, near, max_contacts=room, limits=rules.limits, reach=soon, still=dofs)
        contacts = with_migration(model, q, drop_inner_corners(model, contacts))
        rows = jacobian_at(model, q, contacts)
        return Detection(near, bounds, drop_immovable(model, contacts, rows, state.v), rows, look.reach)


class StepEnd(NamedTuple):
    """The end of a step, as the proposal has it or at the time of impact: the same numbers, with other derivatives.

    tried: the proposal.
    contacts, rows: contacts at its end, and their Jacobian.
    """

    tried: Proposal
    contacts: Contacts
    rows: ContactJacobian


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def detect_at_impact_time(
    rules: Rules, model: Model, lane: Lane, tried: Proposal, look: DetectionRanges, still: Array | None = None
) -> tuple[Proposal, Detection, Array, StepEnd]:
    """Return the end of a proposal, the detection there, and `Lane.late`. Derivatives are those at the time of impact.

    The last result is the same end with its derivatives at the end of the proposal.
    still: (T, *batch) -1 for trees that move; None: all move.
    """
    there = detect_and_determine(rules, model, tried.state, look, _window_length(lane), still)
    return tried, there, lane.late, StepEnd(tried, there.contacts, there.rows)


def _window_length(lane: Lane) -> Array | None:
    return None if lane.search.window is None else lane.search.window.length


def _derivative(
    rules: Rules,
    primals: tuple[Model, Lane, Proposal, DetectionRanges, Array | None],
    tangents: tuple[Any, ...],
) -> tuple[tuple[Proposal, Detection, Array, StepEnd], tuple[Proposal, Detection, Array, StepEnd]]:
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

    d: Proposal = instantiate_zeros(tangents[2], tried)
    late = instantiate_zeros(tangents[1].late, lane.late)
    numbers, changes = [fields[k] for k in varied], [slopes[k] for k in varied]
    there, linear = jax.linearize(look, tried.state.q, *numbers)
    own = linear(d.state.q, *changes)
    end, d_end = StepEnd(tried, there.contacts, there.rows), StepEnd(d, own.contacts, own.rows)
    if rules.time_control != "fixed":  # with fixed steps, an impact does not end a step
        gap = linear(jnp.zeros_like(d.state.q), *changes).contacts.gap if varied else None
        d, late = _shift_end(rules, model, lane, tried, there, d, gap, late)
        own = linear(d.state.q, *changes)
    return (tried, there, lane.late, end), (d, own, late, d_end)


def _shift_end(
    rules: Rules,
    model: Model,
    lane: Lane,
    tried: Proposal,
    there: Detection,
    d: Proposal,
    gap: Array | None,
    late: Array,
) -> tuple[Proposal, Array]:
    """Return tangents d of a proposal whose end moves with the time of impact, and the tangent of `Lane.late`.

    gap: tangents of the gaps (C, *batch) at fixed q if the surfaces change; None: they do not.
    late: (T, *batch) tangent of `Lane.late`.
    """
    state, trees, rows, ready = tried.state, trees_of(model.topology), there.rows, lane.ready
    dv = _acceleration(rules, model, lane, tried.h)
    rates = coordinate_rates(model, state.q, state.v), dv
    u_n = relative_velocity(rows, to_blocks(trees, state.v)).z
    now = phases(model, there.contacts, u_n).impact & ~lane.fresh  # the start of a run is fixed

    # trees that are late catch up
    change = _advance_trees(model, d.state, rates, late)
    # tangent of the time at which each contact strikes
    still = rows.still
    opens = relative_velocity(still, to_blocks(trees, _displacement(model, state.q, change.q)), every=True).z
    opens = opens if gap is None else opens + gap
    each = safe_div(opens, -u_n, now)
    # the fastest contact of each island, and the fastest of all for the clock
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
        each = safe_div(-slopes, a, stops)
        dh = jnp.where(some, dh, _first_of(stops, each))
        theirs = stops[:, None] & (island[trees.of_dof][:, None] == island)  # (nv, T, *batch)
        of_stop = jnp.where(theirs.any(0), _first_of(theirs, each[:, None]), dh)
        own, some = jnp.where(mine.any(0), own, of_stop), some | stops.any(0)
    change = _advance_trees(model, change, rates, jnp.where(some, own, 0))
    return d._replace(state=State(change.q, change.v, d.state.t + dh), h=d.h + dh), dh - own


def _acceleration(rules: Rules, model: Model, lane: Lane, h: Array) -> Array:
    """Return the derivative of the velocities (*batch, nv) at the end of a step by its length h [s].

    Some contact impulses do not grow with it: those that remove a velocity left over from the last step.
    """
    step, again = jnp.where(lane.fresh, 1, h), lane._replace(tried=None)
    end_v = lambda h: propose.fun(rules, model, again, h).uncorrected.v  # noqa: E731
    return jax.jvp(end_v, (step,), (jnp.ones_like(step),))[1]


def _advance_trees(model: Model, d: State, rates: tuple[Array, Array], dt: Array) -> State:
    """Return tangents d of a state whose trees move on by dt (T, *batch) along the flow."""
    topology, trees = model.topology, trees_of(model.topology)
    padded = jnp.concatenate([dt, jnp.zeros_like(dt, shape=(1, *dt.shape[1:]))])

    def advance(x: Array, rate: Array, start: tuple[int, ...]) -> Array:
        tree = np.repeat(trees.of_link[:-1], np.diff(start))
        each = jnp.moveaxis(padded[tree], 0, -1)
        return x + jnp.where(jnp.isfinite(rate), rate, 0) * each  # rates of a rejected step may be anything

    return State(advance(d.q, rates[0], topology.q_start), advance(d.v, rates[1], topology.v_start), d.t)


def _fastest(now: Array, u_n: Array, each: Array) -> Array:
    """Return the entry in `each` of the contact that closes fastest among `now` (C, ...), 0 if there is none."""
    speed = jnp.where(now, u_n, jnp.inf)
    first = jnp.argmin(speed, 0)
    here = now & (jnp.arange(len(now)).reshape(-1, *(1,) * (now.ndim - 1)) == first)
    return jnp.where(here, each, 0).sum(0)


def _first_of(now: Array, each: Array) -> Array:
    """Return the first entry in `each` among `now` (n, ...), 0 if there is none."""
    return jnp.where(now & (jnp.cumsum(now, 0) == 1), each, 0).sum(0)


def _island_of(island: Array, tree: Array) -> Array:
    """Return the island (C, *batch) of each contact, by one of its trees that is not the world."""
    one = tree.min(1)  # the world is last
    return gather(jnp.concatenate([island, jnp.full_like(island[:1], -1)]), one, 0)


def _displacement(model: Model, q: Array, dq: Array) -> Array:
    """Return the joint velocities (*batch, nv) with coordinate rates dq at q; columns of that map are orthogonal."""
    unit = jnp.ones((*q.shape[:-1], model.topology.nv), q.dtype)
    rates, back = jax.vjp(lambda v: coordinate_rates(model, q, v), unit)
    return back(dq)[0] / back(rates)[0]


detect_at_impact_time.defjvp(_derivative, symbolic_zeros=True)
