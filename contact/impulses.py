"""Impulses of a step's contacts, summed over each pair of shapes and over each link."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from ..engine.algebra.vec3 import Vec3
from ..engine.dynamics.kinematics import fk
from ..engine.model import Model
from ..engine.topology import Topology
from .contacts import Contacts
from .gather_scatter import gather, segment_sum


class ContactImpulses(NamedTuple):
    """Sums of the impulses of contacts between shapes, world axes, and of those at the limits of joints.

    links: (nl, 6, *batch) on each link: moment about its origin and impulse [N m s, N s].
    pairs: (np, 3, *batch) impulse on A of each row of `topology.pairs` [N s].
    normals: (np, *batch) sum of the normal impulses of each pair, without direction [N s].
    limits: (nv, *batch) impulse along each degree of freedom by its limits [N m s, N s].
    """

    links: Array
    pairs: Array
    normals: Array
    limits: Array

    @staticmethod
    def none(model: Model, like: Array) -> ContactImpulses:
        """Return zeros.  like: (*batch)."""
        topology = model.topology
        n = len(topology.pairs)
        rows = (topology.n_links, 6), (n, 3), (n,), (topology.nv,)
        return ContactImpulses(*(jnp.zeros((*own, *like.shape), like.dtype) for own in rows))

    @staticmethod
    def by(model: Model, q: Array, contacts: Contacts, p: Any) -> ContactImpulses:
        """Sum the impulses p (C, *batch) on A, in the contact frames, at the coordinates q (*batch, nq)."""
        n_pairs, touch = len(model.topology.pairs), contacts.active & ~contacts.is_limit
        world, pair = contacts.frame.T @ p, jnp.where(contacts.pair >= 0, contacts.pair, n_pairs)
        columns = jnp.stack([jnp.where(touch, x, 0) for x in (*world.xyz, p.z)], 1)
        sums = segment_sum(columns, pair, n_pairs + 1)[:-1]
        links = _link_impulses(model, q, contacts, world, touch)
        return ContactImpulses(links, sums[:, :3], sums[:, 3], _limit_impulses(model.topology, contacts, p.z))

    def __add__(self, other: ContactImpulses) -> ContactImpulses:  # type: ignore[override]
        return ContactImpulses(*(x + y for x, y in zip(self[:], other[:], strict=True)))


def _limit_impulses(topology: Topology, contacts: Contacts, p_n: Array) -> Array:
    """Return the impulse (nv, *batch) along each degree of freedom.  p_n: (C, *batch) at its limit [N m s, N s]."""
    if not topology.nv:
        return jnp.zeros((0, *p_n.shape[1:]), p_n.dtype)
    limit = contacts.active & contacts.is_limit
    return segment_sum(jnp.where(limit, contacts.frame.zz * p_n, 0), jnp.maximum(contacts.dof, 0), topology.nv, limit)


def _link_impulses(model: Model, q: Array, contacts: Contacts, on_a: Vec3, touch: Array) -> Array:
    """Return moment about the origin and impulse on each link, (nl, 6, *batch) [N m s, N s]."""
    n = model.topology.n_links
    origins = jnp.moveaxis(fk(model, q).position, (-2, -1), (0, 1))
    sums = jnp.zeros((n, 6, *contacts.pair.shape[1:]), q.dtype)
    for link, on in ((contacts.link_a, on_a), (contacts.link_b, -on_a)):
        row, real = jnp.maximum(link, 0), touch & (link >= 0)
        origin = gather(origins, row, 1)
        moment = (contacts.point - Vec3(*(origin[:, k] for k in range(3)))).cross(on)
        wrench = jnp.stack([jnp.where(real, x, 0) for x in (*moment.xyz, *on.xyz)], 1)
        sums = sums + segment_sum(wrench, row, n, real)
    return sums
