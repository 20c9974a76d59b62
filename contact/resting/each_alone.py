"""Resting contact by forces: each contact that overlaps pushes, independent of the others."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from ...engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ...engine.model import Model
from ..contact_jacobian import ContactJacobian, joint_impulses, relative_velocity
from ..contacts import Contacts
from .solve import Midway, Rest

# (K [1/kg], u [m/s], mu, e, gap [m], h [s]) -> the impulse on A over a step of length h [N s]
Push = Callable[[Sym3, Vec3, Scalar, Scalar, Scalar, Scalar], Vec3]


def each_alone(push: Push) -> Callable[..., Rest]:
    """Return the model of resting contact in which contacts with gap < 0 push by `push`."""

    def carry(
        model: Model,
        contacts: Contacts,
        rows: ContactJacobian,
        v: Array,
        v_free: Array,
        h: Array | float,
        midway: Midway,
        grips: None = None,
        window: None = None,
    ) -> Rest:
        del v_free, midway, grips, window
        trees = trees_of(model.topology)
        overlaps = contacts.active & (contacts.gap < 0)
        asked = rows.K, relative_velocity(rows, to_blocks(trees, v)), contacts.gap
        harmless = Sym3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0), Vec3(1.0, 0.0, 0.0), -1.0  # values for inactive rows
        K, u, gap = jax.tree.map(lambda x, other: jnp.where(overlaps, x, other), asked, harmless)
        p = push(K, u, contacts.friction, contacts.restitution, gap, h)
        p = jax.tree.map(lambda x: jnp.where(overlaps, x, 0), p)
        spread = from_blocks(trees, joint_impulses(rows, p, trees.n + 1))
        return Rest(v, spread, p, jnp.zeros_like(contacts.code))

    return carry
