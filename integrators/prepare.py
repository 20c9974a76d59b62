"""Preparation of the next step from an accepted state: contact kinematics and step limits."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..collision.broad import pair_plan
from ..collision.passage import Clearances, checked_pairs, clearances, free_shapes
from ..collision.proximities import Proximities
from ..collision.safe_step import longest_step, undetected_step
from ..contact.approach import return_time, slide_time, touch_time
from ..contact.contact_jacobian import ContactJacobian, relative_velocity
from ..contact.contacts import Contacts
from ..contact.curvature import ContactKinematics, contact_kinematics, share_among_sticking
from ..contact.grips import at_wish
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from ..engine.topology import Topology
from .clocks import ONE, Clocks
from .islands_asleep import dofs_asleep, shapes_still
from .lanes import Ready
from .motion.forces import Drive, acceleration
from .motion.softened import has_joints
from .proposal import Proposal
from .resolved import expected_when_damped, resolved_step, resolved_when_damped
from .rules import Rules
from .schemes import DIVIDES, FIRST_ORDER, bend
from .spin import followed_step

Controller = Callable[[Model, State, Array], Drive]  # (model, state, number of the next frame) -> drive


@functools.partial(jax.jit, static_argnums=0)
def prepare_step(
    rules: Rules,
    model: Model,
    state: State,
    near: Proximities,
    bounds: Proximities,
    contacts: Contacts,
    rows: ContactJacobian,
    drive: Drive,
    max_dt: Array,
    tried: Proposal | None = None,
    before: State | None = None,
    island: Array | None = None,
    reach: Array | None = None,
    clocks: Clocks = ONE,
) -> Ready:
    """Prepare the step from a state.

    state: state with the velocities after the impacts.
    near, bounds, contacts, rows: results of detection at `state`.
    drive: controls and forces until the next state.
    max_dt: the longest step [s].
    tried, before: the step that led here, and its initial state; None at the start.
    island: (T, *batch) trees that sleep, see `islands_asleep.py`; None: no tree sleeps.
    reach: (ns, *batch) distance that each shape may move before it can touch a pair without a row [m]; None: all pairs
        have rows.
    clocks: the clock of each tree from now on.
    """
    trees = trees_of(model.topology)
    dv = acceleration(model, state, 1.0, drive.motors, drive.impulses(1.0))
    expected, goes_on = dv, None
    if has_joints(model.topology) and rules.scheme in FIRST_ORDER and rules.time_control != "fixed":
        expected = expected_when_damped(model, state, drive, max_dt, dv)
    if island is not None:
        asleep = jnp.moveaxis(dofs_asleep(model.topology, island), 0, -1)
        dv, expected = (jnp.where(asleep, 0, x) for x in (dv, expected))
    if tried is not None and before is not None:
        expected, goes_on = _expected_acceleration(expected, tried, clocks, model.topology)
    known = stop_gradient((model, state, near, bounds, drive, expected))  # the choice of a step has no derivative
    longest, touch, room = _step_limits(rules, *known, max_dt, island, reach, clocks)
    kinematics = contact_kinematics(model, state.q, state.v, contacts, rows, max_dt)
    if rules.time_control != "fixed":
        follows = followed_step(*stop_gradient((model, state, contacts, kinematics)), max_dt)
        longest = jnp.minimum(longest, clocks.least(rows.tree, follows, jnp.inf))
    u = relative_velocity(rows, to_blocks(trees, state.v))
    kinematics = kinematics._replace(b=share_among_sticking(model, contacts, kinematics.b, u, max_dt))
    if goes_on is not None and rules.time_control != "fixed":
        rate = relative_velocity(rows.still, to_blocks(trees, expected))
        slides = slide_time(model, contacts, u, rate + kinematics.b)  # has a derivative: a step ends with the slide
        touch = jnp.where(goes_on, jnp.minimum(touch, clocks.least(rows.tree, slides, jnp.inf)), touch)
        returns = stop_gradient(return_time(model, contacts, u.z, rate.z * bend(rules.scheme) + kinematics.b.z))
        touch = jnp.minimum(touch, clocks.least(rows.tree, returns, jnp.inf))
    return Ready(state, contacts, rows, u, kinematics, drive, dv, longest, touch, room)


def skip_preparation(
    rules: Rules,
    model: Model,
    state: State,
    bounds: Proximities,
    contacts: Contacts,
    rows: ContactJacobian,
    drive: Drive,
    reach: Array | None,
    left: Array,
) -> Ready:
    """Return empty results of `prepare_step`, for a lane that ends or has just started.  left: time left of clocks."""
    still, never = jax.tree.map(jnp.zeros_like, contacts.point), jnp.zeros_like(left)
    room = None if rules.time_control == "fixed" else _clearances(model, state.q, bounds, reach)
    none = jnp.zeros_like(state.v)
    return Ready(state, contacts, rows, still, ContactKinematics(still, still, still), drive, none, never, never, room)


def _expected_acceleration(dv: Array, tried: Proposal, clocks: Clocks, topology: Topology) -> tuple[Array, Array]:
    """Return the expected accelerations (*batch, nv), and for each clock whether they are those of the last step.

    They are if contacts rested in it.
    """
    lately = (tried.state.v - tried.start_v) / clocks.of_dofs(topology, jnp.where(tried.h > 0, tried.h, 1))
    goes_on = tried.rests & (tried.h > 0)
    return jnp.where(clocks.of_dofs(topology, goes_on), lately, dv), goes_on


def _step_limits(
    rules: Rules,
    model: Model,
    state: State,
    near: Proximities,
    bounds: Proximities,
    drive: Drive,
    dv: Array,
    max_dt: Array,
    island: Array | None,
    reach: Array | None,
    clocks: Clocks,
) -> tuple[Array, Array, Clearances | None]:
    """Return limits of the next step, for each clock.

    They are the longest step in which free bodies pass through nothing undetected and joints are resolved [s]; the
    expected time until a touch [s]; and the clearances of links of trees. Events after the longest step are not
    searched for.
    """
    longest = touch = jnp.full(state.t.shape, jnp.inf, state.q.dtype)
    of_shape = clocks.of_shapes(model.topology)
    if rules.time_control == "fixed":
        return longest, touch, None
    soon = jnp.broadcast_to((1 + 1e-6) * max_dt, state.t.shape).astype(state.q.dtype)
    still = None if island is None else jnp.moveaxis(shapes_still(model.topology, island), 0, -1)
    checked, room = checked_pairs(model.topology), _clearances(model, state.q, bounds, reach)
    if not checked.all():
        free = bounds._replace(active=bounds.active & ~jnp.asarray(checked)[jnp.maximum(bounds.pair, 0)])
        acting = {"control": drive.motors, "forces": drive.forces}
        longest = longest_step(model, state, free, **acting, still=still, within=soon, clock=of_shape)
    alone = tuple(k for k in free_shapes(model.topology) if k in sparse_shapes(rules, model))
    if reach is not None and alone:
        acting = {"control": drive.motors, "forces": drive.forces}
        unseen = undetected_step(
            model, state, jnp.moveaxis(reach, 0, -1), **acting, only=alone, still=still, clock=of_shape
        )
        longest = jnp.minimum(longest, unseen)
    if has_joints(model.topology):
        first_order = rules.scheme in FIRST_ORDER
        within = (
            resolved_when_damped(model, state, dv, drive.motors, soon)
            if first_order
            else resolved_step(model, state, None if rules.scheme in DIVIDES else dv)
        )
        longest = jnp.minimum(longest, within)
    if any(model.topology.gripped):  # a held joint does not move
        dv = jnp.where(at_wish(model, drive.motors, state.v), 0, dv)
    touch = touch_time(model, state.q, state.v, dv * bend(rules.scheme), near, rules.limits, soon, of_shape)
    return clocks.of_clocks(longest), clocks.of_clocks(touch), room


def _clearances(model: Model, q: Array, bounds: Proximities, reach: Array | None) -> Clearances | None:
    """Return the clearances of links of trees until the next check; None if no link needs one."""
    if not checked_pairs(model.topology).any():
        return None
    return clearances(model, q, bounds)._replace(reach=None if reach is None else jnp.moveaxis(reach, 0, -1))


def sparse_shapes(rules: Rules, model: Model) -> tuple[int, ...]:
    """Return shapes whose distant pairs may have no row in `bounds`. All pairs of other shapes have rows."""
    return pair_plan(model.topology, rules.max_pairs).sifted
