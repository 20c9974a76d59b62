"""The collision matrix K of a contact, and the operator between contacts: how impulses change relative velocities.

    u+ = u + K p        one contact (Holck 2.16, 2.17; theorem 1: K is constant, symmetric, positive definite)
    u+ = u + W p        all contacts of an instant; W's diagonal blocks are their K

Both follow from the contact Jacobian J and the responses Y = M^-1 J^T (`contact_jacobian.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ..engine.algebra.vec3 import Vec3
from ..engine.dynamics.trees import trees_of
from ..engine.model import Model
from ..engine.shaped import Float, Real
from .contact_jacobian import ContactJacobian, jacobian_at
from .contacts import Contacts, tangents


def collision_matrix(
    model: Model,
    q: Float[ArrayLike, "*#batch nq"],
    link_a: int | str,
    link_b: int | str = "world",
    *,
    point: Real[ArrayLike, "*#batch 3"] | Sequence[float],
    normal: Real[ArrayLike, "*#batch 3"] | Sequence[float] = (0.0, 0.0, 1.0),
) -> Float[Array, "*#batch 3 3"]:
    """Compute K (..., 3, 3) [1/kg] of a contact of two links, in its frame (t1, t2, n): impulse p changes u by K p.

    link_a, link_b: names or indices; "world" or -1 for the world.
    point: (..., 3) contact point in the world [m].  normal: (..., 3) unit normal, world axes, from B to A.
    """
    q = jnp.asarray(q)
    a, b = model.topology.link(link_a), model.topology.link(link_b)
    if a == b:
        raise ValueError(f"collision_matrix: link_a and link_b are both {link_a!r}; they must be two links")
    links = jnp.array([a, b], jnp.int32)  # arrays, so that one program serves all pairs
    return _collision_matrix(model, q, links, jnp.asarray(point, q.dtype), jnp.asarray(normal, q.dtype))


@jax.jit
def _collision_matrix(model: Model, q: Array, links: Array, point: Array, normal: Array) -> Array:
    batch = jnp.broadcast_shapes(q.shape[:-1], point.shape[:-1], normal.shape[:-1])
    one = lambda x: jnp.full((1, *batch), x, jnp.int32)  # noqa: E731
    vector = lambda x: Vec3(*(jnp.broadcast_to(y, batch)[None] for y in Vec3.of(x).xyz))  # noqa: E731
    none = jnp.zeros((1, *batch), q.dtype)
    contact = Contacts(
        one(-1), one(-1), one(links[0]), one(links[1]), none == 0, none, tangents(vector(normal)), vector(point),
        Vec3(none, none, none), none, none, one(0)[0], one(0)[0],
    )  # fmt: skip
    K = jacobian_at(model, q, contact).K
    full = jnp.stack([jnp.stack(row.xyz, -1) for row in K.full.rows], -2)
    return full[0]


def contact_operator(model: Model, rows: ContactJacobian) -> Array:
    """Compute W (*batch, C, 3, C, 3), the changes of all relative velocities by unit impulses at each contact."""
    trees = trees_of(model.topology)
    meet = rows.tree[:, :, None, None] == rows.tree[None, None]  # (C, 2, C, 2, *batch)
    meet &= (rows.tree < trees.n)[:, :, None, None]
    J, Y = (jnp.stack(x.xyz, 1) for x in (rows.J, rows.Y))  # (C, 3, 2, w, *batch)
    products = jnp.einsum("caiw...,dbjw...->caidbj...", J, Y)
    W = jnp.where(meet[:, None, :, :, None], products, 0).sum((2, 5))
    return jnp.moveaxis(W, (0, 1, 2, 3), (-4, -3, -2, -1))
