"""Grips: dry friction and rigid motors of joints. They hold a joint at a target velocity with a bounded effort.

    rate = wish if |tau| < most;   else tau = +-most, towards the wish      (Coulomb's law in one dimension)

`wish` is the target velocity, 0 for dry friction. A joint that moves feels the constant force `most` until its rate
reaches the target velocity; that is an event, located in time. A joint at its target velocity is solved for together
with all contacts: it is a row of the cone solver with the fixed normal impulse 1 and the friction coefficient most h.
If the solution holds it, it is locked for the step, so that the scheme does not move it. Grips give no impulse in
impacts, which take no time.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.joints import JOINTS
from ..engine.model import Model
from ..engine.topology import Topology
from .contact_jacobian import ContactJacobian, inverse_mass_matrix, joint_jacobian

SolverArguments = tuple[ContactJacobian, Array, Array, Array, Array, Array]  # rows, V, target, mu, active, slides

# SLOW and HOLDS by bytes per number
SLOW = {4: 1e-6, 8: 1e-11}  # [s] a joint that its grip would stop in less time counts as at its target velocity
HOLDS = {4: 1e-6, 8: 1e-12}  # part of the largest impulse: reserve with which a grip counts as holding
REST = 0.05  # rest speeds: rates below this are errors of other contacts
ROUNDING = 8  # rounding error of a rate, in units of eps times the change of rate within STEP
STEP = 1 / 240  # [s]
TURN = 0.1  # [rad, m] if a sliding grip moves its joint farther in a step, the end of the step is not used


class Grips(NamedTuple):
    """The grips of a step, G rows in the order of `Topology.gripped`, dry friction first.

    rows: Jacobian in the middle of the step; its drift is minus the target velocity.
    first: Jacobian at the start, if a joint has to be stopped there.
    most: (G, *batch) largest impulse over the step [N m s, N s].
    push: (G, *batch) impulse of grips that slide all through the step, 0 for others [N m s, N s].
    at_once: (G, *batch) largest impulse at the start of the step, for joints at their target velocity [N m s, N s].
    in_solver: (G, *batch) bool, grips that are rows of the solver.
    slow: (G, *batch) bool, joints at their target velocity.
    slack: (G, *batch) largest difference from the target velocity that counts as none [rad/s, m/s].
    rate: (G, *batch) rates at the start minus target velocities [rad/s, m/s].
    stops: (G, *batch) bool, joints that count as at their target velocity but are not exactly there.
    """

    rows: ContactJacobian
    first: ContactJacobian
    most: Array
    push: Array
    at_once: Array
    in_solver: Array
    slow: Array
    slack: Array
    rate: Array
    stops: Array


def joint_grips(
    model: Model,
    target: Array | None,
    q: Array,
    v: Array,
    dv: Array,
    h: Array,
    inverse: Array,
    rests: Array,
    implicit: Array,
) -> Grips:
    """Return the grips at q, v (*batch, nv), for a step of length h (*batch) [s].

    target: (*batch, nv) target velocities of the motors; None: their targets.
    dv: (*batch, nv) accelerations without contacts and grips.
    inverse: `inverse_mass_matrix` in the middle of the step.
    rests: (*batch) whether contacts rest: their impulses leave errors of rates of order 2 in the step.
    implicit: (*batch) whether joints that move are in the solver too, because no event locates their stop.
    """
    dofs, digits = dofs_of(model.topology), v.dtype.itemsize
    force, wish = _bounds(model, target, h.shape)
    rows = joint_jacobian(model, inverse, dofs, -wish)
    rate, acts = _along(v, dofs) - wish, force > 0
    rounding = ROUNDING * float(jnp.finfo(v.dtype).eps) * STEP * jnp.abs(_along(dv, dofs))
    slack = rows.K.xx * force * SLOW[digits] + rounding
    slack = jnp.where(rests, jnp.maximum(slack, REST * model.rest_speed), slack)
    slow = acts & (jnp.abs(rate) <= slack)
    in_solver = acts & (slow | implicit)
    most = force * h
    push = jnp.where(acts & ~in_solver, -jnp.sign(rate) * most, 0)
    stops = slow & (rate != 0)
    first = jax.lax.cond(
        stops.any(), lambda: joint_jacobian(model, inverse_mass_matrix(model, q), dofs, -wish), lambda: rows
    )
    return Grips(rows, first, most, push, force * jnp.maximum(h, STEP), in_solver, slow, slack, rate, stops)


def _bounds(model: Model, target: Array | None, batch: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the largest efforts [N m, N] and the target velocities [rad/s, m/s], (G, *batch)."""
    losing, rigid = model.topology.gripped
    wide = lambda x: jnp.broadcast_to(x, (*batch, x.shape[-1]))  # noqa: E731
    of = lambda x, dofs: _along(wide(x), dofs)  # noqa: E731
    friction, target = of(model.loss, losing), model.motor_target if target is None else target
    effort = of(jnp.where(jnp.isinf(model.motor_kd), model.motor_effort, 0), rigid)
    return jnp.concatenate([friction, effort]), jnp.concatenate([jnp.zeros_like(friction), of(target, rigid)])


def dofs_of(topology: Topology) -> tuple[int, ...]:
    """Return the degree of freedom of each grip (G,)."""
    losing, rigid = topology.gripped
    return losing + rigid


def _along(v: Array, dofs: tuple[int, ...]) -> Array:
    """Return the entries (G, *batch) of v (*batch, nv) at these degrees of freedom."""
    return jnp.moveaxis(v, -1, 0)[np.array(dofs, int)]


# -- in the system of contacts ----------------------------------------------------------------------------


def append_grips(grips: Grips, free: Array, step: Array, in_solver: SolverArguments) -> tuple[*SolverArguments, Array]:
    """Return the arguments of `solve_cone` for contacts (rows, V, target, mu, active, slides), with grips appended.

    free: (G, *batch) bool, grips that are not stopped at the start: they give way (`give_way`).
    step: () bool, True for the whole step, False for its start.
    """
    rows, V, target, mu, active, slides = in_solver
    own: ContactJacobian = jax.tree.map(lambda x, y: jnp.where(step, x, y), grips.rows, grips.first)
    acting, most = jnp.where(step, grips.in_solver, grips.slow & ~free), jnp.where(step, grips.most, grips.at_once)
    none = jnp.zeros_like(most)
    contacts, behind = (rows, target, mu, active, slides), (own, none, most, acting, grips.slow & False)
    rows, target, mu, active, slides = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), contacts, behind)
    given = jnp.where(jnp.arange(len(target)) < len(in_solver[2]), 0, 1).astype(target.dtype)
    given = jnp.broadcast_to(given.reshape(-1, *(1,) * (target.ndim - 1)), target.shape)
    return rows, V, target, mu, active, slides, given


def give_way(grips: Grips, p: Array) -> Array:
    """Return the grips (G, *batch) that would be stopped at the start of a step which then drives them on.

    p: impulses of the grips over that step.

    A joint that breaks loose is slow at first, as slow as the errors of a joint at rest. If it were stopped at the
    start of each step, it would never get away.
    """
    return grips.stops & (jnp.abs(p) >= grips.most * (1 - HOLDS[p.dtype.itemsize])) & (p * grips.rate < 0)


# -- joints that are held, and joints that come to rest ---------------------------------------------------


def grips_that_hold(model: Model, grips: Grips, p: Array) -> Array:
    """Return the grips (G, *batch) that hold their joints at the target velocity all through the step.

    p: impulses of the grips.

    Grips of floating joints, which have no rotors (`lock_dofs`), are left out: their impulses are spread over the step.
    """
    rotor = has_rotor(model.topology)
    holds = grips.slow & (jnp.abs(p) < grips.most * (1 - HOLDS[p.dtype.itemsize]))
    return holds & rotor[np.array(dofs_of(model.topology))].reshape(-1, *(1,) * (p.ndim - 1))


def has_rotor(topology: Topology) -> np.ndarray:
    """Return the degrees of freedom (nv,) that `lock_dofs` can lock: all except those of floating joints."""
    return np.repeat([joint != "floating" for joint in topology.joints], [JOINTS[j].nv for j in topology.joints])


def stop_held_joints(model: Model, grips: Grips, holds: Array, v: Array) -> tuple[Array, Array]:
    """Return the dofs (*batch, nv) that grips hold, and v (*batch, nv) with these exactly at their target velocity."""
    rates = [v[..., k] for k in range(model.topology.nv)]
    for k, holds_it, drift in reversed(list(zip(dofs_of(model.topology), holds, grips.rows.drift.x, strict=True))):
        rates[k] = jnp.where(holds_it, -drift, rates[k])
    return _of_dofs(model.topology, holds), jnp.stack(rates, -1)


def at_wish(model: Model, target: Array | None, v: Array) -> Array:
    """Return the degrees of freedom (*batch, nv) that are at the target velocity of a grip."""
    dofs = dofs_of(model.topology)
    return _of_dofs(model.topology, _along(v, dofs) == _bounds(model, target, v.shape[:-1])[1])


def lock_dofs(model: Model, dofs: Array) -> Model:
    """Return the model with infinite rotor inertia of these degrees of freedom (*batch, nv): they keep their rates."""
    return model.replace(armature=jnp.where(dofs, jnp.inf, model.armature))


def part_until_stop(model: Model, grips: Grips, before: Array, after: Array, h: Array) -> tuple[Array, Array, Array]:
    """Return when sliding joints reach their target velocity.

    before, after: velocities (*batch, nv) at both ends.
    h: (*batch) length of the step [s].
    Returns the part of the step (*batch) after which the first one does, or 1; the degrees of freedom (*batch, nv) that
    do at the end of the step; and whether the end is not used (*batch): if a motor is so strong that it turned its
    joint by more than TURN, the part is the one in which the motor alone turns it as far.
    """
    slides = grips.push != 0
    first, last = (_along(v, dofs_of(model.topology)) + grips.rows.drift.x for v in (before, after))
    turn = jnp.abs(grips.rows.K.xx * grips.push) * h / (2 * TURN)  # by the motor alone
    wild = slides & (turn > 1) & ~(jnp.abs(last - first) * h <= 2 * TURN)
    ahead, beyond = jnp.abs(first), -jnp.sign(first) * last
    passes = slides & (beyond > grips.slack) & ~wild
    part = safe_div(ahead, ahead + beyond, passes, 1)
    part = jnp.where(wild, jnp.minimum(1 / safe_sqrt(turn, wild, 1), 0.5), part)
    return part.min(0, initial=1), _of_dofs(model.topology, slides & (jnp.abs(last) <= grips.slack)), wild.any(0)


def _of_dofs(topology: Topology, some: Array) -> Array:
    """Return whether any grip of each degree of freedom is selected, (*batch, nv).  some: (G, *batch) bool."""
    own = {k: jnp.zeros(some.shape[1:], bool) for k in range(topology.nv)}
    for k, x in zip(dofs_of(topology), some, strict=True):
        own[k] = own[k] | x
    return jnp.stack(list(own.values()), -1)
