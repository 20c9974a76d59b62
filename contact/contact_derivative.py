"""The derivative of contact points and normals that a search has found.

The gap of two shapes is the largest separation over all normals and the smallest over all points, so its derivative is
that of points fixed to the surfaces (`collision/narrow.py`). The contact itself migrates: a corner slides over a face,
a wheel rolls, two edges cross elsewhere. Its point and its normal move as contact kinematics says (`curvature.py`).
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..collision.narrow import KERNELS, kernel_key
from ..collision.posed import shapes_at
from ..engine.algebra.bounded import instantiate_zeros
from ..engine.algebra.spatial import Transform
from ..engine.algebra.vec3 import Mat3, Vec3
from ..engine.model import Model
from ..engine.topology import Topology
from .contacts import Contacts, tangents
from .curvature import contact_migration


def with_migration(model: Model, q: Array, contacts: Contacts) -> Contacts:
    """Return the same contacts at q (*batch, nq), with the derivatives of points and normals that migrate."""
    searched = _pairs_searched(model.topology)
    if not any(searched):
        return contacts
    migrates = ~contacts.is_limit & contacts.active & jnp.asarray(searched)[contacts.pair]
    point, frame = _migrating(model, shapes_at(model, q).pose, contacts, migrates)
    return contacts._replace(point=point, frame=frame)


@jax.custom_jvp
def _migrating(model: Model, pose: Transform, contacts: Contacts, migrates: Array) -> tuple[Vec3, Mat3]:
    """Return points and frames of the contacts. Where `migrates`, they move with the shapes.

    pose: (ns, *batch) poses of the shapes.
    """
    return contacts.point, contacts.frame


def _derivative(
    primals: tuple[Model, Transform, Contacts, Array], slopes: tuple[Any, ...]
) -> tuple[tuple[Vec3, Mat3], tuple[Vec3, Mat3]]:
    model, pose, contacts, migrates = primals
    there = contacts.point, contacts.frame
    moving = (model.shape_size, pose), there
    rates, fixed = instantiate_zeros(((slopes[0].shape_size, slopes[1]), (slopes[2].point, slopes[2].frame)), moving)
    still = jax.tree.map(jnp.zeros_like, rates)
    # its derivative at rest rather than its value: a linear function to JAX too, which can be transposed
    _, (point, normal) = jax.jvp(lambda rates: contact_migration(model, pose, rates, contacts), (still,), (rates,))
    _, frame = jax.jvp(tangents, (contacts.frame.rows[2],), (normal,))
    return there, jax.tree.map(lambda x, y: jnp.where(migrates, x, y), (point, frame), fixed)


_migrating.defjvp(_derivative, symbolic_zeros=True)


@functools.lru_cache(maxsize=256)
def _pairs_searched(topology: Topology) -> tuple[bool, ...]:
    """Return for each pair of shapes whether its kernel searches, and fixes a contact's points to both shapes."""
    kinds = [(topology.shape_kinds[a], topology.shape_kinds[b]) for a, b in topology.pairs]
    kernels = [KERNELS.get(kernel_key(*pair)[0]) for pair in kinds]
    return tuple(kernel is not None and kernel.searches and not kernel.foot for kernel in kernels)
