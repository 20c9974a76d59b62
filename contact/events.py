"""Impacts: one row for every impact of an instant."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..engine.algebra.vec3 import Vec3
from ..engine.shaped import Float, Int
from .contacts import Contacts
from .gather_scatter import gather


class Impacts(NamedTuple):
    """The impacts of one instant in order: E rows, of which the first `count` are real; components (E, *batch).

    contact: row of the instant's `Contacts`, -1 for an empty row.
    u_before, u_after: relative velocity in the contact frame [m/s].
    impulse: on A, in the contact frame [N s].
    energy_before, energy_after: kinetic energy of the scene [J].
    code: result code of the law.
    count: number of impacts; there may be more of them than rows.
    """

    contact: Int[Array, " E *batch"]
    u_before: Vec3
    u_after: Vec3
    impulse: Vec3
    energy_before: Float[Array, " E *batch"]
    energy_after: Float[Array, " E *batch"]
    code: Int[Array, " E *batch"]
    count: Int[Array, "*batch"]

    @staticmethod
    def none(room: int, like: Array) -> Impacts:
        """Return `room` empty rows, with the lanes and dtype of `like` (C, *batch)."""
        shape = (room, *like.shape[1:])
        zero = jnp.zeros(shape, like.dtype)
        vector, whole = Vec3(zero, zero, zero), jnp.zeros(shape, jnp.int32)
        return Impacts(whole - 1, vector, vector, vector, zero, zero, whole, jnp.zeros(shape[1:], jnp.int32))

    def with_row(self, k: Array, hit: Array, row: Impacts) -> Impacts:
        """Return the log with an impact in row k of lanes that hit, if there is room.  row: components (*batch)."""
        writes = hit & (k < len(self.contact))

        def put(log: Array, new: Array) -> Array:
            old = jax.lax.dynamic_index_in_dim(log, k, 0, keepdims=False)
            return jax.lax.dynamic_update_index_in_dim(log, jnp.where(writes, new, old).astype(log.dtype), k, 0)

        rows: Impacts = jax.tree.map(put, self._replace(count=None), row._replace(count=None))  # type: ignore[arg-type]
        return rows._replace(count=self.count + hit)


class SimultaneousImpacts(NamedTuple):
    """Impacts that are resolved together, (C, *batch) in the contact frames.

    u: relative velocity before [m/s].
    after: relative velocity after [m/s].
    p: impulse on A [N s].
    """

    u: Vec3
    after: Vec3
    p: Vec3


class ContactEvents(NamedTuple):
    """Impacts as users read them, arrays (..., E), one row for each impact, in their order.

    bodies: links A and B, -1 for the world; at a limit the joint's link and its parent.
    pair: row of `topology.pairs`, -1 at a limit.
    dof: the degree of freedom at its limit, -1 for a pair.
    point: in the world, 0 at a limit [m].
    normal: in the world, from B to A, 0 at a limit.
    u_before, u_after: in the contact frame (t1, t2, n) [m/s]; at a limit of a revolute joint [rad/s].
    impulse: on A, in the contact frame [N s]; at a limit of a revolute joint [N m s].
    energy_before, energy_after: kinetic energy of the scene [J].
    code: result code of the law.
    count: number of rows that are real.
    """

    bodies: Int[Array, "*batch E 2"]
    pair: Int[Array, "*batch E"]
    dof: Int[Array, "*batch E"]
    point: Float[Array, "*batch E 3"]
    normal: Float[Array, "*batch E 3"]
    u_before: Float[Array, "*batch E 3"]
    u_after: Float[Array, "*batch E 3"]
    impulse: Float[Array, "*batch E 3"]
    energy_before: Float[Array, "*batch E"]
    energy_after: Float[Array, "*batch E"]
    code: Int[Array, "*batch E"]
    count: Int[Array, "*batch"]


def contact_events(contacts: Contacts, impacts: Impacts) -> ContactEvents:
    """Return the instant's impacts as arrays, lanes first."""
    row = jnp.maximum(impacts.contact, 0)
    real = impacts.contact >= 0

    def of(x: Array) -> Array:
        return _lanes_first(gather(x, row, 0))

    def vectors(x: Vec3) -> Array:
        return jnp.stack([_lanes_first(c) for c in x.xyz], -1)

    def only(x: Array, else_: int) -> Array:
        return jnp.where(_lanes_first(real), x, else_)

    touching = _lanes_first(real & ~gather(contacts.is_limit, row, 0))[..., None]
    point, normal = (jnp.stack([of(c) for c in v.xyz], -1) for v in (contacts.point, contacts.frame.rows[2]))
    return ContactEvents(
        bodies=jnp.stack([only(of(x), -1) for x in (contacts.link_a, contacts.link_b)], -1),
        pair=only(of(contacts.pair), -1),
        dof=only(of(contacts.dof), -1),
        point=jnp.where(touching, point, 0),
        normal=jnp.where(touching, normal, 0),
        u_before=vectors(impacts.u_before),
        u_after=vectors(impacts.u_after),
        impulse=vectors(impacts.impulse),
        energy_before=_lanes_first(impacts.energy_before),
        energy_after=_lanes_first(impacts.energy_after),
        code=_lanes_first(impacts.code),
        count=impacts.count,
    )


def _lanes_first(x: Array) -> Array:
    return jnp.moveaxis(x, 0, -1)
