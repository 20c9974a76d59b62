"""Remove contradictions between the target velocities of contacts whose rows of J are linearly dependent.

A figure that lies on its back touches the ground at a dozen points. If most of them stick, some of their rows of J are
linear combinations of others, and their velocities must be the same combinations. The targets are computed for each
contact by itself, to order 2, and may differ from these combinations by a micrometre per second. Then no impulses reach
all targets. Friction impulses would oppose each other, contacts would alternate between slipping and sticking, and many
iterations would be needed.

Gaussian elimination of W finds these rows: their right sides are reduced to the contradiction, which is subtracted.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.lax import empty, fori_loop

from ...engine.algebra.vec3 import Vec3
from .blocks import block, put

DEPENDS = {4: 1e-4, 8: 1e-10}  # by bytes per number: a pivot below this part of W's diagonal means a dependent row
MOST = 0.01  # part of the largest velocity to change: a larger contradiction is intended, and stays


def remove_contradictions(W: Array, free: Vec3, sticks: Array, count: Array, scale: Array) -> Vec3:
    """Return `free` (C,) without contradictions.

    W: (3 C, 3 C) Delassus matrix, as in `few.py`.
    sticks: (C,) bool, contacts whose tangential rows take part; the normal rows of all contacts do.
    count: () the number of contacts.
    scale: (C,) the largest velocity to change in each contact's island [m/s].
    """
    room, digits = len(sticks), W.dtype.itemsize
    flat = jnp.concatenate(free.xyz)
    order = (2, 0, 1)  # n first

    def row_of(k: Array) -> tuple[Array, Array]:
        """Return contact and direction of the k-th row in the order of elimination."""
        return k % count, jnp.asarray(order, jnp.int32)[k // count]

    def row(k: Array, A: Array) -> Array:
        c, way = row_of(k)
        return put(A, jnp.append(block(W, 3 * c + way), block(flat, way * room + c)), k)

    def eliminate(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        (A, excess), (c, way) = carry, row_of(k)
        at, constrained = way * room + c, (way == 2) | block(sticks, c)
        own, least = block(A, k), DEPENDS[digits] * block(block(W, 3 * c + way), way * room + c)
        left = block(own, at)
        leads = constrained & (left > least)
        over = jnp.where(constrained & ~leads, own[-1], 0)
        excess = put(excess, jnp.where(jnp.abs(over) <= MOST * block(scale, c), over, 0), at)
        own = own / jnp.where(leads, left, 1)

        def clear(i: Array, A: Array) -> Array:
            return put(A, block(A, i) - block(A, i, at) * own, i)

        return fori_loop(k + 1, jnp.where(leads, 3 * count, k + 1), clear, A), excess

    A = fori_loop(0, 3 * count, row, empty((3 * room, 3 * room + 1), W.dtype))
    _, excess = fori_loop(0, 3 * count, eliminate, (A, jnp.zeros_like(flat)))
    x, y, z = jnp.split(flat - excess, 3)
    return Vec3(x, y, z)
