"""The least change of velocities, as kinetic energy knows them, that gives a few contacts what is wanted of them.

    change = Y p,   (W + d K) p = wanted,   W = J Y in the directions that are asked; p = 0 in the others

W may be singular (four corners on a floor): d K is added to it. What that leaves is asked for once more, so that of
what can be had a part of d^2 is left, and nothing is set against each other by more than 1/sqrt(d). The inverse is made
once, for whatever is wanted: Gauss and Jordan's, in place, which needs no pivots, for W is symmetric and d K makes it
positive definite.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.lax import dynamic_update_slice, empty, fori_loop

from ...engine.algebra.vec3 import Vec3
from ..jacobian import ContactJacobian
from .blocks import block, listed, put

DAMPING = 1e-3  # of K: contacts that all but depend on each other must not be set against each other
ROOM = 39  # directions that may be asked: five vectors of 64 bytes


class Asked(NamedTuple):
    """Directions in which something is asked of contacts, ROOM at most.  fits: () whether these are all.

    which: (3 C,) their numbers among t1 of all contacts, then t2, then n; the first `count` ().
    tree: (ROOM, sides), Y: (ROOM, sides, w) of these, as in `ContactJacobian`.
    inverse: (ROOM, ROOM) of W + d K.
    soft: (ROOM,) d K.
    Entries after the last one may hold anything.
    """

    fits: Array
    which: Array
    count: Array
    tree: Array
    Y: Array
    inverse: Array
    soft: Array


def asked(rows: ContactJacobian, ways: Any, trees: int) -> Asked:
    """ways: components (C,) bool, the directions that are asked.  trees: how many there are."""
    K = jnp.concatenate([rows.K.xx, rows.K.yy, rows.K.zz])
    which, count = listed(jnp.concatenate(ways.xyz) & (K > 0))  # what cannot move is not asked to
    fits = count <= ROOM
    return Asked(fits, which, count, *_system(rows, K, which, jnp.where(fits, count, 0), trees))


def least(asked: Asked, wanted: Vec3, still: Array) -> tuple[Array, Vec3]:
    """The change (T + 1, w) in tree blocks, and impulses (C,).

    wanted: (C,), along what is asked.  still: (T + 1, w) zeros."""
    flat = jnp.concatenate(wanted.xyz)
    take = lambda k, x: put(x, block(flat, block(asked.which, k)), k)  # noqa: E731
    p = _damped(asked, fori_loop(0, asked.count, take, jnp.zeros_like(asked.soft)))
    p = p + _damped(asked, asked.soft * p)  # what that leaves

    def push(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        V, impulses = carry
        own, y, pushes = block(asked.tree, k), block(asked.Y, k), block(p, k)
        for side in range(len(own)):
            V = put(V, block(V, own[side]) + y[side] * pushes, own[side])
        return V, put(impulses, pushes, block(asked.which, k))

    change, impulses = fori_loop(0, asked.count, push, (still, jnp.zeros_like(flat)))
    return change, Vec3(*impulses.reshape(3, -1))


def _damped(asked: Asked, right: Array) -> Array:
    add = lambda k, p: p + block(right, k) * block(asked.inverse, k)  # noqa: E731
    return fori_loop(0, asked.count, add, jnp.zeros_like(right))


def _system(
    rows: ContactJacobian, K: Array, which: Array, count: Array, trees: int
) -> tuple[Array, Array, Array, Array]:
    """tree, Y, inverse, soft, as in `Asked`."""
    (C, sides, w), dtype, zero = rows.J.x.shape, K.dtype, jnp.int32(0)
    place = jnp.arange(ROOM, dtype=jnp.int32)

    def take(k: Array, carry: Any) -> Any:
        J, tree, Y, soft = carry
        at = block(which, k)
        c, way = at % C, at // C
        j, y = (jnp.where(way == 0, block(x, c), jnp.where(way == 1, block(y, c), block(z, c)))
                for x, y, z in (rows.J.xyz, rows.Y.xyz))  # fmt: skip
        J = dynamic_update_slice(J, j[:, :, None], (zero, zero, k))
        return J, put(tree, block(rows.tree, c), k), put(Y, y, k), put(soft, DAMPING * block(K, at), k)

    start = (
        jnp.zeros((sides, w, ROOM), dtype),
        jnp.full((ROOM, sides), trees, jnp.int32),
        empty((ROOM, sides, w), dtype),
    )
    J, tree, Y, soft = fori_loop(0, count, take, (*start, jnp.zeros(ROOM, dtype)))

    def row(k: Array, A: Array) -> Array:
        own, y = block(tree, k), block(Y, k)
        u = jnp.where(place == k, soft, 0)
        for i, j in itertools.product(range(sides), repeat=2):
            meet = True if sides == 1 else (tree[:, i] == own[j]) & (own[j] < trees)
            u = u + jnp.where(meet, (J[i] * y[j][:, None]).sum(0), 0)
        return put(A, u, k)

    def eliminate(k: Array, A: Array) -> Array:
        row = block(A, k)
        row = jnp.where(place == k, 1, row) * (1 / row[k])

        def clear(i: Array, A: Array) -> Array:
            left = jnp.where(place == k, 0, block(A, i)) - block(A, i, k) * row
            return put(A, jnp.where(i == k, row, left), i)

        return fori_loop(0, count, clear, put(A, row, k))

    A = fori_loop(0, count, row, empty((ROOM, ROOM), dtype))
    return tree, Y, fori_loop(0, count, eliminate, A), soft
