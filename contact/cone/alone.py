"""Contacts that share no moving tree with another: each is solved by itself, so many balls on a table cost little.

Sweeps of `coulomb.relaxed` settle one contact soon: at once where across and along the normal are not coupled, as with
a ball. What has not settled is left to Newton's method (`solve.py`), and judged by the same distance from the law.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import fori_loop

from ...engine.algebra.fence import fence
from ...engine.algebra.vec3 import Sym3, Vec3
from ..indexing import gather
from ..jacobian import ContactJacobian
from . import coulomb
from .blocks import block, put

ITERATIONS = 12


class Alone(NamedTuple):
    """p: (C, *batch) impulses, 0 where not active [N s].  V: (T + 1, w, *batch) velocities after them.
    settled: () whether that is so in every lane; where not, p and V are those of no impulse."""

    p: Vec3
    V: Array
    settled: Array


class _Contact(NamedTuple):
    """What one contact knows, components (*batch). u: its velocity without impulses, less the target [m/s]."""

    K: Sym3
    u: Vec3
    mu: Array


def solve_alone(
    rows: ContactJacobian,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    tolerance: float,
    given: Array | None = None,
) -> Alone:
    """The impulses of `solve_cone` where no two active contacts of any lane share a tree."""
    number = jnp.arange(1, len(active) + 1, dtype=jnp.int32).reshape(-1, *(1,) * (active.ndim - 1))
    count = jnp.where(active, number, 0).max()
    none = jnp.zeros_like(target)
    nothing = Alone(Vec3(none, none, none), V, jnp.array(False))
    apart = _apart(rows.tree, active, count, len(V) - 1)
    solved = lambda: _solved(rows, V, target, mu, active, tolerance, count, given)  # noqa: E731
    return jax.lax.cond(apart, solved, lambda: nothing)


def _apart(tree: Array, active: Array, count: Array, n: int) -> Array:
    places = jnp.arange(n, dtype=tree.dtype).reshape(-1, *(1,) * (active.ndim - 1))

    def see(c: Array, seen: Array) -> Array:
        here = (block(tree, c)[:, None] == places) & block(active, c)
        return seen + here.sum(0, dtype=jnp.int32)

    return (fori_loop(0, count, see, jnp.zeros((n, *active.shape[1:]), jnp.int32)) <= 1).all()


def _solved(
    rows: ContactJacobian,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    tolerance: float,
    count: Array,
    given: Array | None,
) -> Alone:
    lanes = active.shape[1:]

    def clean(c: Array, x: Array) -> Array:
        return jnp.where(block(active, c), block(x, c), 0)

    def look(c: Array, carry: tuple[Vec3, Array, Array]) -> tuple[Vec3, Array, Array]:
        u, scale, size = carry
        J, drift = jax.tree.map(lambda x: clean(c, x), (rows.J, rows.drift))
        own, most = _seen(J, gather(V, block(rows.tree, c), 1), drift, clean(c, target))
        largest = jnp.maximum(jnp.maximum(jnp.abs(own.x), jnp.abs(own.y)), jnp.abs(own.z))
        return jax.tree.map(lambda x, y: put(x, y, c), u, own), jnp.maximum(scale, largest), jnp.maximum(size, most)

    none, zero = jnp.zeros_like(target), jnp.zeros(lanes, V.dtype)
    u, scale, size = fori_loop(0, count, look, (Vec3(none, none, none), zero, zero))
    limit = tolerance * scale + 8 * jnp.finfo(V.dtype).eps * size

    def solve(c: Array, carry: tuple[Vec3, Array, Array]) -> tuple[Vec3, Array, Array]:
        p, V, well = carry
        K = jax.tree.map(lambda x, unit: jnp.where(block(active, c), block(x, c), unit), rows.K, UNIT)
        start, free = Vec3(zero, zero, zero), jax.tree.map(lambda x: block(x, c), u)
        if given is not None:  # it moves nothing
            start = Vec3(zero, zero, clean(c, given))
            free = free - Vec3(zero, zero, K.zz * start.z)
        own, settled = _settle(_Contact(K, free, clean(c, mu)), start, limit)
        Y = jax.tree.map(lambda x: clean(c, x), rows.Y)
        return jax.tree.map(lambda x, y: put(x, y, c), p, own), _pushed(V, Y, own, block(rows.tree, c)), well & settled

    p, after, well = fori_loop(0, count, solve, (Vec3(none, none, none), V, jnp.ones(lanes, bool)))
    return Alone(p, after, well.all())


UNIT = Sym3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)


@fence
def _seen(J: Vec3, v: Array, drift: Vec3, target: Array) -> tuple[Vec3, Array]:
    """u less the target, and the largest sum of what makes it: a measure of its rounding."""
    u = jax.tree.map(lambda row, own: (row * v).sum((0, 1)) + own, J, drift)
    parts = [(jnp.abs(row) * jnp.abs(v)).sum((0, 1)) for row in J.xyz]
    return Vec3(u.x, u.y, u.z - target), jnp.maximum(jnp.maximum(parts[0], parts[1]), parts[2])


def _settle(contact: _Contact, start: Vec3, limit: Array) -> tuple[Vec3, Array]:
    def iteration(state: tuple[Array, Vec3, Array]) -> tuple[Array, Vec3, Array]:
        k, p, _ = state
        p, distance = _relaxed(contact, p)
        return k + 1, p, distance

    begin = (jnp.int32(0), start, jnp.full_like(limit, jnp.inf))
    _, p, distance = jax.lax.while_loop(lambda s: (s[0] < ITERATIONS) & (s[2] > limit).any(), iteration, begin)
    return p, distance <= limit


@fence
def _relaxed(contact: _Contact, p: Vec3) -> tuple[Vec3, Array]:
    K, u, mu = contact
    p = coulomb.Relaxation.of(K, mu).relaxed(p, u + K @ p)
    return p, coulomb.distance(K, p, u + K @ p, mu)


@fence
def _pushed(V: Array, Y: Vec3, p: Vec3, tree: Array) -> Array:
    change = Y.x * p.x + Y.y * p.y + Y.z * p.z
    places = jnp.arange(len(V), dtype=tree.dtype).reshape(-1, *(1,) * (V.ndim - 1))
    for side in range(len(tree)):
        V = V + jnp.where(places == tree[side], change[side], 0)
    return V
