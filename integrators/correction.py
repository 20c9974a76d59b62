"""Correction of the end of a step whose carried contacts have errors in gap or velocity (`contact_error.py`).

The end is changed by impulses of these contacts,

    shift = Y l,  J shift = -gap;   kick = Y p,  J kick = -u,   with J, Y of the end

which is the change with the least kinetic energy. It acts along the normals, and in all three directions of contacts
that stick. Bodies that stick at several points may then be too tightly held to close a gap elsewhere (a box on an edge
that leans on another one cannot turn), so the second correction acts along the normals only.

J turns with the shift, so both are computed twice, the second time with the changes of gaps and normal velocities by
the second derivatives of the gaps (`contact/curvature.py`). The remaining gap is of order 3 in the shift. Contacts that
the shift would push in get a wanted gap as well. A correction may pull a contact, but not much harder than the step
pressed it: if more is needed, the body has left the contact, for example over an edge, and the contact is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..contact.contact_jacobian import ContactJacobian, jacobian_at, relative_velocity
from ..contact.contacts import Contacts
from ..contact.curvature import contact_kinematics_at
from ..contact.gather_scatter import gather
from ..contact.grips import lock_dofs
from ..contact.impulses import ContactImpulses
from ..engine.algebra.vec3 import Vec3
from ..engine.dynamics.kinematics import bracket
from ..engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from .clocks import Clocks
from .contact_error import NEAR, ContactErrors
from .correction_derivative import Corrected, with_derivative
from .lanes import Correction
from .least_changes import change_solver
from .proposal import Proposal

ADHERES = 4.0  # times the load: a contact that a correction would pull harder has opened
REPEATED = 3  # most repetitions with other contacts


class _CorrectionState(NamedTuple):
    """The correction so far.

    tries: number of repetitions.
    normal: (C, *batch) contacts whose gaps it sets.
    off: (C, *batch) errors of their gaps [m].
    goes_on: whether it is repeated with other contacts.
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

    model, tried, contacts and rows have derivatives (`correction_derivative.py`).
    """
    if tried.locked_dofs is not None:  # joints that are held do not move
        rows = jacobian_at(lock_dofs(model, tried.locked_dofs), tried.state.q, contacts)
    vary = rows, contacts.gap, to_blocks(trees_of(model.topology), tried.state.v)
    model, end_state, contacts, rows = stop_gradient((model, tried.state, contacts, rows.still))
    none = jnp.zeros_like(errors.gap)
    concerned, still = clocks.of_contacts(rows.tree, again), jnp.zeros_like(before.shift)
    sticks = errors.tangent & clocks.of_contacts(rows.tree, before.times == 0)

    was, matched = errors.partner
    load = jnp.where(matched, gather(stop_gradient(tried.impulse.z), was, 0), 0)
    h = stop_gradient(clocks.of_contacts(rows.tree, tried.h))

    def iterate(x: _CorrectionState) -> _CorrectionState:
        tangent = sticks & x.normal
        directions = jax.tree.map(lambda x: x & concerned, Vec3(tangent, tangent, x.normal))
        change_for = change_solver(clocks, rows, directions, still)
        (shift, l), (kick, p) = change_for(Vec3(none, none, x.off), errors.u)
        adheres = (l.z < -ADHERES * load * h) | (~errors.lifts & (p.z < -ADHERES * load))
        pulls = concerned & x.normal & errors.normal & (errors.gap > -NEAR * model.gap_band) & adheres
        there = contacts.gap + relative_velocity(rows, shift).z
        new = concerned & contacts.active & ~x.normal & (there < jnp.minimum(contacts.gap, 0) - model.gap_band)
        off = jnp.where(new, jnp.maximum(contacts.gap, 0), x.off)
        gap_change, rate_change = _effect_of_turning_normals(model, end_state, contacts, rows, shift, kick)
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
        goes_on = (new | pulls).any() & (x.tries < REPEATED)
        return _CorrectionState(x.tries + 1, (x.normal & ~pulls) | new, off, goes_on, shift + more, kick, p)

    start = _CorrectionState(
        jnp.int32(0), errors.normal, errors.gap, jnp.bool_(True), still, still, Vec3(none, none, none)
    )
    end = jax.lax.while_loop(lambda x: x.goes_on, iterate, start)
    normal, tangent = end.normal & concerned, sticks & end.normal & concerned
    gaps = normal & (errors.normal | (contacts.gap > 0))
    kicked = clocks.of_contacts(rows.tree, clocks.total(rows.tree, end.p.dot(end.p)) > 0)
    velocities = Vec3(tangent & kicked, tangent & kicked, errors.normal & ~errors.lifts & kicked)
    corrected = Corrected(clocks, Vec3(tangent, tangent, normal), gaps, velocities, end.shift, end.kick)
    shift, kick = with_derivative(corrected, *vary)
    impulses = before.impulses
    if impulses is not None:
        impulses = impulses + ContactImpulses.by(model, end_state.q, contacts, end.p)
    return Correction(before.shift + shift, before.kick + kick, before.times + 1, impulses)


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
