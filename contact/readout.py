"""Who pushed whom: the impulses of a step's contacts, summed over each pair of shapes and over each link."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from ..engine.algebra.vec3 import Vec3
from ..engine.dynamics.kinematics import fk
from ..engine.model import Model
from .contacts import Contacts
from .picking import picked, summed


class ContactImpulses(NamedTuple):
    """Sums of contact impulses, world axes; divide by the step's length for mean forces.

    pair: (..., np, 3) on A of each row of `topology.pairs` [N s].  link: (..., nl, 3) on each link [N s].
    limit: (..., nv) along each degree of freedom, from its limits [N m s, N s].
    normal: (..., np) the pairs' normal impulses, added up without sign [N s].
    """

    pair: Array
    link: Array
    limit: Array
    normal: Array


def contact_impulses(model: Model, contacts: Contacts, p: Vec3) -> ContactImpulses:
    """Sums of the impulses p (C, *batch), on A in the contact frames."""
    topology = model.topology
    touch = contacts.active & ~contacts.is_limit
    world = contacts.frame.T @ p
    on_a = [jnp.where(touch, x, 0) for x in world.xyz]
    n_pairs, nl, nv = len(topology.pairs), topology.n_links, topology.nv

    def over(index: Array, values: list[Array], n: int) -> Array:
        index = jnp.where(index >= 0, index, n)
        total = summed(jnp.stack(values, 1), index, n + 1)[:-1]
        return jnp.moveaxis(total, (0, 1), (-2, -1))

    links = over(contacts.link_a, on_a, nl) - over(contacts.link_b, on_a, nl)
    along = jnp.where(contacts.active & contacts.is_limit, p.z * contacts.frame.zz, 0)
    normal = over(contacts.pair, [jnp.where(touch, p.z, 0)], n_pairs)[..., 0]
    return ContactImpulses(over(contacts.pair, on_a, n_pairs), links, over(contacts.dof, [along], nv)[..., 0], normal)


class Pushed(NamedTuple):
    """Impulses of contacts between shapes, world axes.

    links: (nl, 6, *batch) on each link: moment about its origin and impulse [N m s, N s].
    pairs: (np, 3, *batch) on A of each row of `topology.pairs` [N s].
    normals: (np, *batch) their normal impulses, added up without direction [N s].
    """

    links: Array
    pairs: Array
    normals: Array

    @staticmethod
    def none(model: Model, like: Array) -> Pushed:
        """like: (*batch)."""
        topology = model.topology
        n = len(topology.pairs)
        rows = (topology.n_links, 6), (n, 3), (n,)
        return Pushed(*(jnp.zeros((*own, *like.shape), like.dtype) for own in rows))

    @staticmethod
    def by(model: Model, q: Array, contacts: Contacts, p: Any) -> Pushed:
        """By impulses p (C, *batch), on A in the contact frames, at the coordinates q (*batch, nq)."""
        of = contact_impulses(model, contacts, p)
        pairs, normals = jnp.moveaxis(of.pair, (-2, -1), (0, 1)), jnp.moveaxis(of.normal, -1, 0)
        return Pushed(_link_impulses(model, q, contacts, p), pairs, normals)

    def __add__(self, other: Pushed) -> Pushed:  # type: ignore[override]
        return Pushed(*(x + y for x, y in zip(self[:], other[:], strict=True)))


def _link_impulses(model: Model, q: Array, contacts: Contacts, p: Vec3) -> Array:
    """(nl, 6, *batch)"""
    n, touch = model.topology.n_links, contacts.active & ~contacts.is_limit
    world = contacts.frame.T @ p
    origins = jnp.moveaxis(fk(model, q).position, (-2, -1), (0, 1))
    sums = jnp.zeros((n, 6, *contacts.pair.shape[1:]), q.dtype)
    for link, on in ((contacts.link_a, world), (contacts.link_b, -world)):
        row, real = jnp.maximum(link, 0), touch & (link >= 0)
        origin = picked(origins, row, 1)
        moment = (contacts.point - Vec3(*(origin[:, k] for k in range(3)))).cross(on)
        wrench = jnp.stack([jnp.where(real, x, 0) for x in (*moment.xyz, *on.xyz)], 1)
        sums = sums + summed(wrench, row, n, real)
    return sums
