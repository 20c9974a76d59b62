"""The change of velocities with the least kinetic energy that gives a few contacts a wanted change of u.

    change = Y p,   (W + d K) p = wanted,   W = J Y in the selected directions; p = 0 in the others

W may be singular (four corners on a floor), so d K is added to it. One step of iterative refinement reduces the error
of d to d^2. Contacts that contradict each other push against each other by at most 1/sqrt(d). The inverse is computed
once and used for several right sides: Gauss-Jordan elimination in place, without pivoting, since W + d K is symmetric
positive definite.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.lax import dynamic_update_slice, empty, fori_loop

from ...engine.algebra.vec3 import Vec3
from ..contact_jacobian import ContactJacobian
from .blocks import block, indices_of, put

DAMPING = 1e-3  # part of K: keeps nearly dependent contacts from pushing against each other
ROOM = 39  # directions: with the right side, five vectors of 64 bytes


class Directions(NamedTuple):
    """Directions of contacts with a wanted change of velocity, ROOM at most.

    fits: () whether there is room for all.
    which: (3 C,) their indices among t1 of all contacts, then t2, then n; the first `count` () are valid.
    tree: (ROOM, sides) their trees, as in `ContactJacobian`.
    Y: (ROOM, sides, w) their responses, as in `ContactJacobian`.
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


def select_directions(rows: ContactJacobian, selected: Vec3, trees: int) -> Directions:
    """Return the selected directions.

    selected: components (C,) bool, the directions.
    trees: the number of trees.
    """
    K = jnp.concatenate([rows.K.xx, rows.K.yy, rows.K.zz])
    which, count = indices_of(jnp.concatenate(selected.xyz) & (K > 0))  # no impulse moves a direction with K = 0
    fits = count <= ROOM
    return Directions(fits, which, count, *_system(rows, K, which, jnp.where(fits, count, 0), trees))


def least_change(directions: Directions, wanted: Vec3, still: Array) -> tuple[Array, Vec3]:
    """Return the least change of velocities (T + 1, w) in tree blocks, and its impulses (C,).

    wanted: (C,) change of u in the selected directions [m/s].
    still: (T + 1, w) zeros.
    """
    flat = jnp.concatenate(wanted.xyz)
    take = lambda k, x: put(x, block(flat, block(directions.which, k)), k)  # noqa: E731
    p = _apply_inverse(directions, fori_loop(0, directions.count, take, jnp.zeros_like(directions.soft)))
    p = p + _apply_inverse(directions, directions.soft * p)  # refinement

    def push(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        V, impulses = carry
        own, y, pushes = block(directions.tree, k), block(directions.Y, k), block(p, k)
        for side in range(len(own)):
            V = put(V, block(V, own[side]) + y[side] * pushes, own[side])
        return V, put(impulses, pushes, block(directions.which, k))

    change, impulses = fori_loop(0, directions.count, push, (still, jnp.zeros_like(flat)))
    return change, Vec3(*impulses.reshape(3, -1))


def _apply_inverse(directions: Directions, right: Array) -> Array:
    add = lambda k, p: p + block(right, k) * block(directions.inverse, k)  # noqa: E731
    return fori_loop(0, directions.count, add, jnp.zeros_like(right))


def _system(
    rows: ContactJacobian, K: Array, which: Array, count: Array, trees: int
) -> tuple[Array, Array, Array, Array]:
    """Return tree, Y, inverse and soft of `Directions`."""
    (C, sides, w), dtype, zero = rows.J.x.shape, K.dtype, jnp.int32(0)
    columns = jnp.arange(ROOM, dtype=jnp.int32)

    def take(k: Array, carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
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
        u = jnp.where(columns == k, soft, 0)
        for i, j in itertools.product(range(sides), repeat=2):
            meet = True if sides == 1 else (tree[:, i] == own[j]) & (own[j] < trees)
            u = u + jnp.where(meet, (J[i] * y[j][:, None]).sum(0), 0)
        return put(A, u, k)

    def eliminate(k: Array, A: Array) -> Array:
        row = block(A, k)
        row = jnp.where(columns == k, 1, row) * (1 / row[k])

        def clear(i: Array, A: Array) -> Array:
            left = jnp.where(columns == k, 0, block(A, i)) - block(A, i, k) * row
            return put(A, jnp.where(i == k, row, left), i)

        return fori_loop(0, count, clear, put(A, row, k))

    A = fori_loop(0, count, row, empty((ROOM, ROOM), dtype))
    return tree, Y, fori_loop(0, count, eliminate, A), soft
