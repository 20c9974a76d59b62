"""The least change of velocities, as kinetic energy knows them, that gives a few contacts what is wanted of them.

    change = Y p,   (W + d K) p = wanted,   W = J Y in the directions that are asked; p = 0 in the others

W may be singular (four corners on a floor): d K is added to it. What that leaves is asked for once more, so that of
what can be had a part of d^2 is left, and nothing is set against each other by more than 1/sqrt(d).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import empty, fori_loop

from ...engine.algebra.vec3 import Vec3
from ..rows import Rows
from . import gauss
from .blocks import block, listed, put, put_back
from .few import FEW, delassus, first
from .many import Ends, pushed

DAMPING = 1e-3  # of K: contacts that all but depend on each other must not be set against each other


class Asked(NamedTuple):
    """Contacts of which something is asked, FEW at most.  fits: () whether these are all.

    ways: (3 FEW,) bool, t1 of all, then t2, then n: the directions that are asked.  W: as in `few.Few`.  soft: (3 FEW,)
    what is added to its diagonal.
    """

    ends: Ends
    fits: Array
    ways: Array
    W: Array
    soft: Array


def asked(rows: Rows, ways: Any, trees: int) -> Asked:
    """ways: components (C,) bool, the directions that are asked."""
    which, count = listed(ways.x | ways.y | ways.z)
    ends = Ends(rows.tree, rows.J, rows.Y, which, count)
    fits, some = count <= FEW, first(which)
    own, K = jax.tree.map(lambda x: x[some], (ways, Vec3(rows.K.xx, rows.K.yy, rows.K.zz)))
    W = jax.lax.cond(fits, lambda: delassus(ends, some, trees), lambda: empty((3 * FEW, 3 * FEW), rows.J.x.dtype))
    K = jnp.concatenate(K.xyz)
    there = jnp.tile(jnp.arange(FEW) < count, 3) & (K > 0)  # what cannot move is not asked to
    return Asked(ends, fits, jnp.concatenate(own.xyz) & there, W, DAMPING * K)


def least(asked: Asked, wanted: Vec3, still: Array) -> tuple[Array, Vec3]:
    """The change (T + 1, w) in tree blocks, and impulses (C,), of contacts that fit.

    wanted: (C,), along what is asked.  still: (T + 1, w) zeros."""
    some, count, none = first(asked.ends.which), asked.ends.count, jnp.zeros_like(wanted.x)
    right = jnp.where(asked.ways, jnp.concatenate([x[some] for x in wanted.xyz]), 0)
    p = _damped(asked, right)
    p = p + _damped(asked, asked.soft * p)  # what that leaves
    impulses = put_back(Vec3(none, none, none), Vec3(*p.reshape(3, FEW)), some, count)
    return pushed(asked.ends, still, impulses), impulses


def _damped(asked: Asked, right: Array) -> Array:
    N = 3 * FEW
    place = jnp.arange(N + 1, dtype=jnp.int32)

    def row(r: Array, A: Array) -> Array:
        """Of the r-th unknown that counts: by contacts, three each."""
        k = r % 3 * FEW + r // 3
        here, goes = place == k, block(asked.ways, k)
        own = jnp.append(block(asked.W, r), 0) + jnp.where(here, block(asked.soft, k), 0)
        own = jnp.where(goes, own, jnp.where(here, 1, 0))
        return put(A, jnp.where(place == N, block(right, k), own), r)

    count = 3 * asked.ends.count
    return gauss.solve(fori_loop(0, count, row, empty((N, N + 1), right.dtype)), count)
