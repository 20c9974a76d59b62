"""Several impacts at one instant, one after another or all at once.

sequential    the contact that closes fastest is resolved alone by the law; then the next, until none closes. A row of
              equal balls passes an impulse on to the last one (e = 1: only that one leaves), as do balls 0.1 mm apart;
              with one sweep each keeps v_N = ((1 + e)/2)^(N - 1) v. With e = 0 three balls end at v/3 each, after
              infinitely many impacts in theory; here contacts that close more slowly than `rest_speed` rest.
simultaneous  all contacts are resolved at once by Moreau's law, u_n+ = -e u_n- at contacts with an impulse, Coulomb's
              cone for friction. Three equal balls, e = 1: (-1/3, 2/3, 2/3) v; e = 0: v/3 each. If Newton's restitution
              would gain energy (friction, or unequal e), the impulses are reduced on the straight line to the plastic
              ones, which never gain any, until no energy is gained.

Neither is "right": they are the two limits of how fast an impulse travels through bodies that touch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..engine.algebra.bounded import loop
from ..engine.algebra.safe import safe_div
from ..engine.algebra.vec3 import Sym3, Vec3
from ..engine.compaction import compact
from ..engine.model import Model
from ..engine.results import IMPACTS_CAPPED, OK, gravest
from .cone.solve import solve_cone
from .contact_jacobian import ContactJacobian, apply_impulses, relative_velocity
from .contacts import Contacts
from .determine import gather_pairs, phases, would_bounce
from .events import Impacts, SimultaneousImpacts
from .gather_scatter import gather
from .laws.law import Law
from .laws.table import reversible_impulse

_Given = tuple[Model, Contacts, ContactJacobian]
_Carry = tuple[Array, Array, Vec3, Array, Array, Impacts]  # number so far, V, u, striking contacts, energy, log

UNIT = Sym3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)


class ResolvedImpacts(NamedTuple):
    """The result of the impacts of an instant.

    V: (T + 1, w, *batch) velocities after them.
    log: the impacts.
    code: (*batch) result code.
    """

    V: Array
    log: Impacts
    code: Array


def sequential(
    model: Model,
    law: Law,
    contacts: Contacts,
    rows: ContactJacobian,
    V: Array,
    energy: Array,
    max_impacts: int,
    max_logged: int,
) -> ResolvedImpacts:
    """Resolve impacts one at a time, the fastest first.  energy: (*batch) kinetic energy before [J]."""

    def striking(given: _Given, V: Array) -> tuple[Vec3, Array]:
        model, contacts, rows = given
        u = relative_velocity(rows, V)
        return u, phases(model, contacts, u.z).impact

    def resolve(given: _Given, carry: _Carry) -> _Carry:
        model, contacts, rows = given
        k, V, u, now, energy, log = carry
        hit, worst = now.any(0), jnp.argmin(jnp.where(now, u.z, jnp.inf), 0).astype(jnp.int32)
        one, before, mu, e = jax.tree.map(
            lambda x: gather(x, worst[None], x.ndim - V.ndim + 1), (rows, u, contacts.friction, contacts.restitution)
        )
        before = jax.tree.map(lambda x: jnp.where(hit, x, 0), before)  # no NaN from lanes without impacts
        K = jax.tree.map(lambda x, unit: jnp.where(hit, x, unit), one.K, UNIT)
        p, code = reversible_impulse(law, K, before, mu, e, tangential(model, contacts, worst))
        after = before + K @ p
        u0, u1, p0, gained = jax.tree.map(lambda x: x[0], (before, after, p, _work(p, before, after)))
        log = log.with_row(k, hit, Impacts(worst, u0, u1, p0, energy, energy + gained, code[0], log.count))
        V = apply_impulses(one, V, p)
        return k + 1, V, *striking(given, V), energy + gained, log

    def tangential(model: Model, contacts: Contacts, worst: Array) -> Array | float:
        """Return the tangential restitution of contact `worst`, (1, *batch)."""
        if not law.tangential:
            return 0.0
        return gather_pairs(model.pair_tangential_restitution, gather(contacts.pair, worst[None], 0))

    def busy(_: _Given, carry: _Carry) -> Array:
        return (carry[0] < max_impacts) & carry[3].any()

    given = model, contacts, rows
    start = (jnp.int32(0), V, *striking(given, V), energy, Impacts.none(min(max_impacts, max_logged), energy[None]))
    _, V, u, unfinished, _, log = loop(max_impacts, busy, resolve, given, start)
    bounces = unfinished & would_bounce(model, contacts, u.z)
    return ResolvedImpacts(V, log, jnp.where(bounces.any(0), IMPACTS_CAPPED, OK).astype(jnp.int32))


def simultaneous(
    model: Model,
    law: Law,
    contacts: Contacts,
    rows: ContactJacobian,
    V: Array,
    energy: Array,
    max_impacts: int,
    max_logged: int,
) -> ResolvedImpacts:
    """Resolve all impacts at once by Moreau's law; `law` is ignored.  energy: (*batch) kinetic energy before [J]."""
    u = relative_velocity(rows, V)
    now = phases(model, contacts, u.z)
    struck = now.impact.any(0)
    touching = contacts.active & (contacts.gap <= model.gap_band) & struck
    bounce = jnp.maximum(-contacts.restitution * u.z, 0)
    elastic, _, code, _ = solve_cone(rows, V, bounce, contacts.friction, touching)
    plastic, _, other, _ = solve_cone(rows, V, jnp.zeros_like(bounce), contacts.friction, touching)
    p = _without_gain(rows, V, u, plastic, elastic, touching)
    after = relative_velocity(rows, V_after := apply_impulses(rows, V, p))
    log = impact_log(touching & (p.z > 0), SimultaneousImpacts(u, after, p), energy)
    return ResolvedImpacts(V_after, log, gravest(code, other))


def impact_log(felt: Array, struck: SimultaneousImpacts, energy: Array) -> Impacts:
    """Return the log of simultaneous impacts.

    felt: (C, *batch) bool, contacts with an impulse.
    energy: (*batch) kinetic energy before [J].
    """
    u, after, p = struck
    work = jnp.where(felt, _work(p, u, after), 0)
    order, real = compact(felt, len(felt))
    u0, u1, p1, gained = jax.tree.map(lambda x: jnp.where(real, gather(x, order, 0), 0), (u, after, p, work))
    sums = energy + jnp.cumsum(gained, 0)
    number, none = felt.sum(0, dtype=jnp.int32), jnp.zeros_like(order)
    return Impacts(jnp.where(real, order, -1), u0, u1, p1, sums - gained, sums, none, number)


def _work(p: Vec3, before: Vec3, after: Vec3) -> Array:
    """Return the kinetic energy gained by an impulse (p . (u0 + u1) / 2, exact for any p) [J]."""
    return p.dot(before + after) * 0.5


def _without_gain(rows: ContactJacobian, V: Array, u: Vec3, plastic: Vec3, elastic: Vec3, touching: Array) -> Vec3:
    """Return the impulses on the line from the plastic to the elastic ones that are farthest and gain no energy.

    On the line between them all impulses stay in their cones and no contact closes, since both sets are convex. The
    energy along the line is a parabola.
    """
    only = lambda p: jax.tree.map(lambda x: jnp.where(touching, x, 0), p)  # noqa: E731
    plastic, step = only(plastic), only(elastic - plastic)
    plastic_effect, step_effect = (relative_velocity(rows, apply_impulses(rows, V, p)) - u for p in (plastic, step))
    total = lambda p, u: jnp.where(touching, p.dot(u), 0).sum(0)  # noqa: E731
    c = total(plastic, u + plastic_effect * 0.5)
    b, a = total(step, u + plastic_effect), total(step, step_effect) * 0.5
    root = jnp.sqrt(jnp.maximum(b * b - 4 * a * c, 0))
    gains = (a + b + c > 0) & (a > 0)
    far = safe_div(root - b, 2 * a, gains, 1)
    return plastic + step * jnp.clip(far, 0, 1)


IMPACTS: dict[str, Callable[..., ResolvedImpacts]] = {"sequential": sequential, "simultaneous": simultaneous}
