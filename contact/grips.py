"""Grips: what holds a joint at a speed with a bounded effort. Dry friction holds it at 0, a rigid motor at its target.

    rate = wish where |tau| < most;   else tau = +-most, towards the wish      (Coulomb's law in one dimension)

A joint that moves feels a constant force, most, until its rate comes to the wish; that is an event, found in time. One
that is at its wish is asked for together with all contacts: a row of the cone solver whose normal impulse is given, 1,
and whose friction is most h. What then holds is locked for the step: no scheme moves it, whatever else goes on. Impacts
take no time, and a bounded effort has no impulse there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.joints import JOINTS
from ..engine.model import Model
from ..engine.topology import Topology
from .jacobian import ContactJacobian, inverse_mass_matrix, joint_jacobian

# by the bytes of a number
SLOW = {4: 1e-6, 8: 1e-11}  # [s] what its grip would stop in less time is at its wish
HOLDS = {4: 1e-6, 8: 1e-12}  # of what a grip can give: where that much is left, it holds
REST = 0.05  # rest speeds: slower than that what other contacts leave is noise
ROUNDING = 8  # rounding errors of what changes a rate within STEP
STEP = 1 / 240  # [s]


class Grips(NamedTuple):
    """What may hold joints through a step, G rows: `Topology.gripped`, dry friction first.

    rows: in the middle of the step; their drift is minus the wish.
    first: the same at its start, where something has to be stopped there.
    most: (G, *batch) impulses at most [N m s, N s].
    push: (G, *batch) impulses of those that slide all through the step, 0 of others [N m s, N s].
    at_once: (G, *batch) the same at the instant at which the step starts, of those at their wish.
    asked: (G, *batch) bool, those that the solver is asked for.
    slow: (G, *batch) bool, those at their wish.
    slack: (G, *batch) how far from the wish that still is [rad/s, m/s].
    stops: (*batch) bool, whether some are slow that are not quite at their wish.
    """

    rows: ContactJacobian
    first: ContactJacobian
    most: Array
    push: Array
    at_once: Array
    asked: Array
    slow: Array
    slack: Array
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
    """At q, v (*batch, nv), for a step of length h (*batch) [s].

    target: (*batch, nv) target velocities of the motors; None: their targets.
    dv: (*batch, nv) accelerations without contacts and grips.
    inverse: `inverse_mass_matrix` the middle of the step.
    rests: (*batch) whether contacts rest: their impulses leave rates that are off by the square of the step.
    implicit: (*batch) whether the solver is asked for those that move, too: no event will say where they stop.
    """
    dofs, digits = dofs_of(model.topology), v.dtype.itemsize
    force, wish = _bounds(model, target, h.shape)
    rows = joint_jacobian(model, inverse, dofs, -wish)
    rate, acts = _along(v, dofs) - wish, force > 0
    rounding = ROUNDING * float(jnp.finfo(v.dtype).eps) * STEP * jnp.abs(_along(dv, dofs))
    slack = rows.K.xx * force * SLOW[digits] + rounding
    slack = jnp.where(rests, jnp.maximum(slack, REST * model.rest_speed), slack)
    slow = acts & (jnp.abs(rate) <= slack)
    asked = acts & (slow | implicit)
    most = force * h
    push = jnp.where(acts & ~asked, -jnp.sign(rate) * most, 0)
    stops = (slow & (rate != 0)).any(0)
    first = jax.lax.cond(
        stops.any(), lambda: joint_jacobian(model, inverse_mass_matrix(model, q), dofs, -wish), lambda: rows
    )
    return Grips(rows, first, most, push, force * jnp.maximum(h, STEP), asked, slow, slack, stops)


def _bounds(model: Model, target: Array | None, batch: tuple[int, ...]) -> tuple[Array, Array]:
    """Efforts at most [N m, N] and wishes [rad/s, m/s], (G, *batch)."""
    losing, rigid = model.topology.gripped
    wide = lambda x: jnp.broadcast_to(x, (*batch, x.shape[-1]))  # noqa: E731
    of = lambda x, dofs: _along(wide(x), dofs)  # noqa: E731
    friction, target = of(model.loss, losing), model.motor_target if target is None else target
    effort = of(jnp.where(jnp.isinf(model.motor_kd), model.motor_effort, 0), rigid)
    return jnp.concatenate([friction, effort]), jnp.concatenate([jnp.zeros_like(friction), of(target, rigid)])


def dofs_of(topology: Topology) -> tuple[int, ...]:
    """The degree of freedom of each grip (G,)."""
    losing, rigid = topology.gripped
    return losing + rigid


def _along(v: Array, dofs: tuple[int, ...]) -> Array:
    """(G, *batch) of (*batch, nv)."""
    return jnp.moveaxis(v, -1, 0)[np.array(dofs, int)]


# -- beside contacts ------------------------------------------------------------------------------------


def append_grips(grips: Grips, step: Array, asked: tuple[Any, ...]) -> Any:
    """What `solve_cone` is asked for: contacts, (rows, V, target, mu, active, slides), and behind them grips.

    step: () bool, whether for the whole step; else for the instant at which it starts.
    """
    rows, V, target, mu, active, slides = asked
    own: ContactJacobian = jax.tree.map(lambda x, y: jnp.where(step, x, y), grips.rows, grips.first)
    acting, most = jnp.where(step, grips.asked, grips.slow), jnp.where(step, grips.most, grips.at_once)
    none = jnp.zeros_like(most)
    contacts, behind = (rows, target, mu, active, slides), (own, none, most, acting, grips.slow & False)
    rows, target, mu, active, slides = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), contacts, behind)
    given = jnp.where(jnp.arange(len(target)) < len(asked[2]), 0, 1).astype(target.dtype)
    given = jnp.broadcast_to(given.reshape(-1, *(1,) * (target.ndim - 1)), target.shape)
    return rows, V, target, mu, active, slides, given


# -- what is held, and what comes to rest -----------------------------------------------------------------


def grips_that_hold(model: Model, grips: Grips, p: Array) -> Array:
    """Which grips (G, *batch) keep their joints at their wish all through the step, by their impulses p.

    Not those of floating joints, which have no rotors (`locked`): what holds them is spread over the step as it is.
    """
    joints = model.topology.joints
    rotor = np.repeat([joint != "floating" for joint in joints], [JOINTS[joint].nv for joint in joints])
    holds = grips.slow & (jnp.abs(p) < grips.most * (1 - HOLDS[p.dtype.itemsize]))
    return holds & rotor[np.array(dofs_of(model.topology))].reshape(-1, *(1,) * (p.ndim - 1))


def stop_held_joints(model: Model, grips: Grips, holds: Array, v: Array) -> tuple[Array, Array]:
    """Which degrees of freedom (*batch, nv) grips hold, and v (*batch, nv) with these quite at their wish."""
    rates = [v[..., k] for k in range(model.topology.nv)]
    for k, holds_it, drift in reversed(list(zip(dofs_of(model.topology), holds, grips.rows.drift.x, strict=True))):
        rates[k] = jnp.where(holds_it, -drift, rates[k])
    return _of_dofs(model.topology, holds), jnp.stack(rates, -1)


def at_wish(model: Model, target: Array | None, v: Array) -> Array:
    """Which degrees of freedom (*batch, nv) a grip has stopped."""
    dofs = dofs_of(model.topology)
    return _of_dofs(model.topology, _along(v, dofs) == _bounds(model, target, v.shape[:-1])[1])


def lock_dofs(model: Model, dofs: Array) -> Model:
    """The model with these degrees of freedom (*batch, nv) at the rate that they have: their rotors are infinite."""
    return model.replace(armature=jnp.where(dofs, jnp.inf, model.armature))


def part_until_stop(model: Model, grips: Grips, before: Array, after: Array) -> tuple[Array, Array]:
    """The part of the step (*batch) after which the first grip that slides comes to its wish, 1 if none does; and which
    degrees of freedom (*batch, nv) come to it at the step's end.

    before, after: velocities (*batch, nv) at both ends.
    """
    slides = grips.push != 0
    first, last = (_along(v, dofs_of(model.topology)) + grips.rows.drift.x for v in (before, after))
    ahead, beyond = jnp.abs(first), -jnp.sign(first) * last
    passes = slides & (beyond > grips.slack)
    part = jnp.where(passes, ahead / jnp.where(passes, ahead + beyond, 1), 1).min(0, initial=1)
    return part, _of_dofs(model.topology, slides & (jnp.abs(last) <= grips.slack))


def _of_dofs(topology: Topology, some: Array) -> Array:
    """(*batch, nv) whether any grip of a degree of freedom is among those (G, *batch)."""
    own = {k: jnp.zeros(some.shape[1:], bool) for k in range(topology.nv)}
    for k, x in zip(dofs_of(topology), some, strict=True):
        own[k] = own[k] | x
    return jnp.stack(list(own.values()), -1)
