"""The least change of velocities, as kinetic energy knows them, that gives a few contacts what is wanted of them.

    change = Y p,   (W + d K) p = wanted,   W = J Y in the directions that are asked; p = 0 in the others

W may be singular (four corners on a floor): d K is added to it. What that leaves is asked for once more, so that of
what can be had a part of d^2 is left, and nothing is set against each other by more than 1/sqrt(d). Its inverse is made
once, for whatever is wanted of these contacts: Gauss and Jordan's, in place, which needs no pivots, for W is symmetric
and d K makes it positive definite.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import empty, fori_loop

from ...engine.algebra.vec3 import Vec3
from ..rows import Rows
from .blocks import block, listed, put, put_back
from .few import FEW, delassus, first
from .many import Ends, pushed

DAMPING = 1e-3  # of K: contacts that all but depend on each other must not be set against each other


class Asked(NamedTuple):
    """Contacts of which something is asked, FEW at most.  fits: () whether these are all.

    ways: (3 FEW,) bool, t1 of all, then t2, then n: the directions that are asked; unknown: (3 FEW,) their numbers, the
    first `count` ().  inverse: (3 FEW, 3 FEW) of W + d K in these; other rows may hold anything.  soft: (3 FEW,) d K.
    """

    ends: Ends
    fits: Array
    ways: Array
    unknown: Array
    count: Array
    inverse: Array
    soft: Array


def asked(rows: Rows, ways: Any, trees: int) -> Asked:
    """ways: components (C,) bool, the directions that are asked."""
    which, contacts = listed(ways.x | ways.y | ways.z)
    ends, some = Ends(rows.tree, rows.J, rows.Y, which, contacts), first(which)
    own, K = jax.tree.map(lambda x: x[some], (ways, Vec3(rows.K.xx, rows.K.yy, rows.K.zz)))
    K = jnp.concatenate(K.xyz)
    there = jnp.tile(jnp.arange(FEW) < contacts, 3) & (K > 0)  # what cannot move is not asked to
    own, soft, fits = jnp.concatenate(own.xyz) & there, DAMPING * K, contacts <= FEW
    unknown, count = listed(own)
    made = lambda: _inverse(delassus(ends, some, trees), own, unknown, count, soft)  # noqa: E731
    inverse = jax.lax.cond(fits, made, lambda: empty((3 * FEW, 3 * FEW), soft.dtype))
    return Asked(ends, fits, own, unknown, count, inverse, soft)


def least(asked: Asked, wanted: Vec3, still: Array) -> tuple[Array, Vec3]:
    """The change (T + 1, w) in tree blocks, and impulses (C,), of contacts that fit.

    wanted: (C,), along what is asked.  still: (T + 1, w) zeros."""
    some, none = first(asked.ends.which), jnp.zeros_like(wanted.x)
    right = jnp.where(asked.ways, jnp.concatenate([x[some] for x in wanted.xyz]), 0)
    p = _damped(asked, right)
    p = p + _damped(asked, asked.soft * p)  # what that leaves
    impulses = put_back(Vec3(none, none, none), Vec3(*p.reshape(3, FEW)), some, asked.ends.count)
    return pushed(asked.ends, still, impulses), impulses


def _damped(asked: Asked, right: Array) -> Array:
    def add(n: Array, p: Array) -> Array:
        j = block(asked.unknown, n)
        return p + block(right, j) * block(asked.inverse, j)

    return fori_loop(0, asked.count, add, jnp.zeros_like(right))


def _inverse(W: Array, ways: Array, unknown: Array, count: Array, soft: Array) -> Array:
    place = jnp.arange(3 * FEW, dtype=jnp.int32)

    def row(n: Array, A: Array) -> Array:
        j = block(unknown, n)
        own = block(W, j % FEW * 3 + j // FEW) + jnp.where(place == j, soft, 0)
        return put(A, jnp.where(ways, own, 0), j)

    def eliminate(n: Array, A: Array) -> Array:
        j = block(unknown, n)
        row = block(A, j)
        row = jnp.where(place == j, 1, row) / row[j]

        def clear(m: Array, A: Array) -> Array:
            i = block(unknown, m)
            other = block(A, i)
            left = jnp.where(place == j, 0, other) - other[j] * row
            return put(A, jnp.where(i == j, row, left), i)

        return fori_loop(0, count, clear, A)

    return fori_loop(0, count, eliminate, fori_loop(0, count, row, empty(W.shape, W.dtype)))
