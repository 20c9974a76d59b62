"""What contacts that hang together ask for, made to agree where they cannot move apart.

A figure that lies on its back touches the ground at a dozen places, and where most of them stick, some of their rows of
J depend on others: how these move is known from how those do. What they are to do in a step is worked out of each
contact by itself, to order 2, so that it may differ from that by a micrometre a second. No law can obey both. It would
let friction fight itself: some contacts slip by so little, others hang between slipping and sticking, and to find out
which takes many iterations.

Gauss's elimination of W finds such rows: nothing is left of them but what they ask for in excess. That is dropped.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.lax import empty, fori_loop

from ...engine.algebra.vec3 import Vec3
from .blocks import block, put

DEPENDS = {4: 1e-4, 8: 1e-10}  # of a row's own entry of W, by the bytes of a number: if no more is left, it depends
MOST = 0.01  # of the largest velocity there is to change: what is farther off is meant so


def consistent(W: Array, free: Vec3, sticks: Array, count: Array, scale: Array) -> Vec3:
    """free (C,) without contradictions.

    W: (3 C, 3 C) as in `few.py`.  sticks: (C,) bool, contacts that are not to slip; what they do along n counts of all.
    count: () how many contacts there are.  scale: () the largest velocity there is to change.
    """
    room, digits = len(sticks), W.dtype.itemsize
    flat = jnp.concatenate(free.xyz)
    order = (2, 0, 1)  # n first

    def place(k: Array) -> tuple[Array, Array]:
        """Of the k-th row that is looked at, its contact and its direction."""
        return k % count, jnp.asarray(order, jnp.int32)[k // count]

    def row(k: Array, A: Array) -> Array:
        c, way = place(k)
        return put(A, jnp.append(block(W, 3 * c + way), block(flat, way * room + c)), k)

    def eliminate(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        (A, excess), (c, way) = carry, place(k)
        at, asked = way * room + c, (way == 2) | block(sticks, c)
        own, least = block(A, k), DEPENDS[digits] * block(block(W, 3 * c + way), way * room + c)
        left = block(own, at)
        leads = asked & (left > least)
        over = jnp.where(asked & ~leads, own[-1], 0)
        excess = put(excess, jnp.where(jnp.abs(over) <= MOST * scale, over, 0), at)
        own = own / jnp.where(leads, left, 1)

        def clear(i: Array, A: Array) -> Array:
            return put(A, block(A, i) - block(A, i, at) * own, i)

        return fori_loop(k + 1, jnp.where(leads, 3 * count, k + 1), clear, A), excess

    A = fori_loop(0, 3 * count, row, empty((3 * room, 3 * room + 1), W.dtype))
    _, excess = fori_loop(0, 3 * count, eliminate, (A, jnp.zeros_like(flat)))
    x, y, z = jnp.split(flat - excess, 3)
    return Vec3(x, y, z)
