"""Correction of the end of a step whose carried contacts have errors in gap or velocity (`contact_error.py`).

The end is changed by impulses of these contacts,

    shift = Y l,  J shift = -gap;   kick = Y p,  J kick = -u,   with J, Y of the end

which is the change with the least kinetic energy. It acts along the normals, and in all three directions of contacts
that stick. Bodies that stick at several points may then be too tightly held to close a gap elsewhere (a box on an edge
that leans on another one cannot turn), so the second correction acts along the normals only.

J turns with the shift, so both are computed twice, the second time with the changes of gaps and normal velocities by
the second derivatives of the gaps (`contact/curvature.py`). The remaining gap is of order 3 in the shift. Contacts that
the shift would push in get a wanted gap as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..contact.cone.least import DAMPING, select_directions
from ..contact.cone.least import least_change as least_change_of_few
from ..contact.contact_jacobian import ContactJacobian, apply_impulses, jacobian_at, relative_velocity
from ..contact.contacts import Contacts
from ..contact.curvature import contact_kinematics_at
from ..contact.grips import lock_dofs
from ..contact.impulses import ContactImpulses
from ..engine.algebra.bounded import loop
from ..engine.algebra.vec3 import Vec3
from ..engine.dynamics.kinematics import bracket
from ..engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from .clocks import Clocks
from .contact_error import ContactErrors
from .lanes import Correction
from .proposal import Proposal

PUSHED = 2  # repetitions with more contacts, because a shift would push them in
SWEEPS = 40  # iterations of conjugate gradients
ENOUGH = 1e-4  # relative residual at which they stop


class _CorrectionState(NamedTuple):
    """The correction so far.

    tries: number of repetitions.
    normal: (C, *batch) contacts whose gaps it sets.
    off: (C, *batch) errors of their gaps [m].
    goes_on: whether it is repeated because other contacts were pushed in.
    shift: (T + 1, w, *batch) displacement [rad, m].
    kick: (T + 1, w, *batch) change of velocity [rad/s, m/s].
    p: (C, *batch) impulses of the kick [N s].
    """

    tries: Array
    normal: Array
    off: Array
    goes_on: Array
    shift: Array
    kick: Array
    p: Vec3


def correct_step_end(
    model: Model,
    clocks: Clocks,
    before: Correction,
    tried: Proposal,
    contacts: Contacts,
    rows: ContactJacobian,
    errors: ContactErrors,
    again: Array,
) -> Correction:
    """Correct the end of a step without pushing other contacts in, and return the correction.

    before: the correction so far.
    contacts, rows: contacts at the end of the step, and their Jacobian.
    errors: their errors.
    again: whether to correct, for each clock.
    """
    if tried.locked_dofs is not None:  # joints that are held do not move
        rows = jacobian_at(lock_dofs(model, tried.locked_dofs), tried.state.q, contacts)
    none, rows = jnp.zeros_like(errors.gap), rows.still
    concerned, still = clocks.of_contacts(rows.tree, again), jnp.zeros_like(before.shift)
    sticks = errors.tangent & clocks.of_contacts(rows.tree, before.times == 0)

    def iterate(x: _CorrectionState) -> _CorrectionState:
        directions = jax.tree.map(lambda x: x & concerned, Vec3(sticks, sticks, x.normal))
        change_for = _change_solver(clocks, rows, directions, still)
        (shift, _), (kick, _) = change_for(Vec3(none, none, x.off), errors.u)
        there = contacts.gap + relative_velocity(rows, shift).z
        new = concerned & contacts.active & ~x.normal & (there < jnp.minimum(contacts.gap, 0) - model.gap_band)
        off = jnp.where(new, jnp.maximum(contacts.gap, 0), x.off)
        gap_change, rate_change = _effect_of_turning_normals(model, tried.state, contacts, rows, shift, kick)
        # at the end of an edge the second derivative is meaningless
        small = jnp.abs(gap_change) <= clocks.of_contacts(rows.tree, clocks.most(rows.tree, jnp.abs(x.off)))
        gap_change = jnp.where(x.normal & small, gap_change, 0)
        reverses = errors.normal & ~errors.lifts & (jnp.abs(rate_change) <= errors.most)
        u = Vec3(errors.u.x, errors.u.y, errors.u.z + jnp.where(reverses, rate_change, 0))
        (more, _), (kick, p) = change_for(Vec3(none, none, gap_change), u)
        # M kick = J^T p
        gains = clocks.total(rows.tree, p.dot(u + relative_velocity(rows, kick) * 0.5)) > 0
        kick = clocks.either(gains, jnp.zeros_like(kick), kick)
        p = jax.tree.map(lambda c: jnp.where(clocks.of_contacts(rows.tree, gains), 0, c), p)
        return _CorrectionState(x.tries + 1, x.normal | new, off, new.any() & (x.tries < PUSHED), shift + more, kick, p)

    start = _CorrectionState(
        jnp.int32(0), errors.normal, errors.gap, jnp.bool_(True), still, still, Vec3(none, none, none)
    )
    end = jax.lax.while_loop(lambda x: x.goes_on, iterate, start)
    impulses = before.impulses
    if impulses is not None:
        impulses = impulses + ContactImpulses.by(model, tried.state.q, contacts, end.p)
    return Correction(before.shift + end.shift, before.kick + end.kick, before.times + 1, impulses)


def _effect_of_turning_normals(
    model: Model, end: State, contacts: Contacts, rows: ContactJacobian, shift: Array, kick: Array
) -> tuple[Array, Array]:
    """Return changes of gaps [m] and normal velocities [m/s] (C, *batch) because a shift turns normals.

    The second derivative b of a gap is quadratic in the velocities. Along the shift s (T + 1, w, *batch) the gap gains
    b(s) / 2; its rate at the velocity v gains (b(v + s) - b(v - s)) / 4 plus half the rate along the bracket [s, v].
    rows: Jacobian without drift.
    """
    trees = trees_of(model.topology)
    v, s = end.v + from_blocks(trees, kick), from_blocks(trees, shift)
    ahead, back, alone = (x.b.z for x in contact_kinematics_at(model, end.q, (v + s, v - s, s), contacts, rows))
    crossed = relative_velocity(rows, to_blocks(trees, bracket(model, s, v))).z
    return alone * 0.5, (ahead - back) * 0.25 + crossed * 0.5


def _change_solver(
    clocks: Clocks, rows: ContactJacobian, directions: Vec3, still: Array
) -> Callable[..., Sequence[tuple[Array, Vec3]]]:
    """Return a function from errors of contacts (C, *batch) to the least change that removes them, and its impulses.

    directions: directions of the errors.  The change is (T + 1, w, *batch), in tree blocks.
    still: (T + 1, w, *batch) zeros.
    """
    wanted = functools.partial(jax.tree.map, lambda way, x: jnp.where(way, -x, 0), directions)

    def many(*offs: Vec3) -> Sequence[tuple[Array, Vec3]]:
        each = jax.tree.map(lambda *x: jnp.stack(x), *offs)
        found = jax.lax.map(lambda off: _least_change(clocks, rows, wanted(off), directions, still), each)
        return [jax.tree.map(lambda x, k=k: x[k], found) for k in range(len(offs))]

    if still.ndim > 2:
        return many
    few = select_directions(rows, directions, len(still) - 1)
    direct = lambda *offs: [least_change_of_few(few, wanted(off), still) for off in offs]  # noqa: E731
    return lambda *offs: jax.lax.cond(few.fits, direct, many, *offs)


class _ConjugateGradient(NamedTuple):
    """State of conjugate gradients.

    left: residual.
    along: search direction.
    change: (T + 1, w, *batch) solution, in tree blocks.
    p: impulses of the solution.
    """

    left: Vec3
    along: Vec3
    change: Array
    p: Vec3


def _least_change(
    clocks: Clocks, rows: ContactJacobian, wanted: Vec3, directions: Vec3, like: Array
) -> tuple[Array, Vec3]:
    """Return the least change (T + 1, w, *batch), in tree blocks, with a wanted change of u, and its impulses.

    rows: Jacobian without drift.
    wanted: (C, *batch) change of u [m/s].
    directions: (C, *batch) bool, the directions that count.

    J Y may be singular (four corners on a floor), so DAMPING K is added to it. One step of refinement follows.
    """
    first = _solve_damped(clocks, rows, wanted, directions, like)
    left = jax.tree.map(
        lambda way, x, u: jnp.where(way, x - u, 0), directions, wanted, relative_velocity(rows, first.change)
    )
    second = _solve_damped(clocks, rows, left, directions, like)
    return first.change + second.change, first.p + second.p


def _solve_damped(
    clocks: Clocks, rows: ContactJacobian, wanted: Vec3, directions: Vec3, like: Array
) -> _ConjugateGradient:
    """Compute `_least_change` without refinement, by conjugate gradients on J Y + DAMPING K."""
    none = jnp.zeros_like(wanted.z)

    def sweep(given: tuple[Clocks, ContactJacobian, Vec3, Array], x: _ConjugateGradient) -> _ConjugateGradient:
        clocks, rows, directions, enough = given
        total, each = (functools.partial(f, rows.tree) for f in (clocks.total, clocks.of_contacts))
        change, K = apply_impulses(rows, jnp.zeros_like(x.change), x.along), rows.K
        soft = Vec3(K.xx * x.along.x, K.yy * x.along.y, K.zz * x.along.z) * DAMPING
        gives = jax.tree.map(lambda way, u: jnp.where(way, u, 0), directions, relative_velocity(rows, change) + soft)
        old, curve = total(x.left.dot(x.left)), total(x.along.dot(gives))
        go = (old > enough) & (curve > 0)
        part = jnp.where(go, old, 0) / jnp.where(go, curve, 1)
        left = x.left - gives * each(part)
        more = total(left.dot(left)) / jnp.where(go, old, 1)
        along = jax.tree.map(lambda y, z: jnp.where(each(go), y + z * each(more), z), left, x.along)
        return _ConjugateGradient(left, along, x.change + change * clocks.of_blocks(part), x.p + x.along * each(part))

    def busy(given: tuple[Clocks, ContactJacobian, Vec3, Array], x: tuple[Array, _ConjugateGradient]) -> Array:
        left = x[1].left
        return (x[0] < SWEEPS) & (clocks.total(given[1].tree, left.dot(left)) > given[3]).any()

    given = clocks, rows, directions, clocks.total(rows.tree, wanted.dot(wanted)) * ENOUGH**2
    start = jnp.zeros((), jnp.int32), _ConjugateGradient(wanted, wanted, jnp.zeros_like(like), Vec3(none, none, none))
    return loop(SWEEPS, busy, lambda given, x: (x[0] + 1, sweep(given, x[1])), given, start)[1]
