"""Contacts that share no moving tree with another are solved one by one, so that many balls on a table are cheap.

A few iterations of `coulomb.Relaxation` solve one contact. One iteration is enough if K does not couple the normal with
the tangents, as for a ball. If any contact is not solved, all are left to Newton's method (`solve.py`), which measures
the same distance from the law.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import fori_loop

from ...engine.algebra.fence import fence
from ...engine.algebra.vec3 import Sym3, Vec3
from ..contact_jacobian import ContactJacobian
from ..gather_scatter import gather
from . import coulomb
from .blocks import block, put

ITERATIONS = 12


class SeparateSolution(NamedTuple):
    """p: (C, *batch) impulses, 0 for inactive contacts [N s].
    V: (T + 1, w, *batch) velocities after the impulses.
    solved: () whether all lanes are solved; if not, p and V are not to be used.
    """

    p: Vec3
    V: Array
    solved: Array


class _Contact(NamedTuple):
    """One contact, components (*batch).

    K: collision matrix [1/kg].
    u: velocity without impulses, less the target [m/s].
    mu: friction coefficient.
    """

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
    fixed_p_n: Array | None = None,
) -> SeparateSolution:
    """Compute the impulses of `solve_cone`, if no two active contacts of any lane share a tree."""
    number = jnp.arange(1, len(active) + 1, dtype=jnp.int32).reshape(-1, *(1,) * (active.ndim - 1))
    count = jnp.where(active, number, 0).max()
    none = jnp.zeros_like(target)
    nothing = SeparateSolution(Vec3(none, none, none), V, jnp.array(False))
    apart = _share_no_tree(rows.tree, active, count, len(V) - 1)
    solved = lambda: _solve_each(rows, V, target, mu, active, tolerance, count, fixed_p_n)  # noqa: E731
    return jax.lax.cond(apart, solved, lambda: nothing)


def _share_no_tree(tree: Array, active: Array, count: Array, n: int) -> Array:
    indices = jnp.arange(n, dtype=tree.dtype).reshape(-1, *(1,) * (active.ndim - 1))

    def count_contacts(c: Array, counts: Array) -> Array:
        here = (block(tree, c)[:, None] == indices) & block(active, c)
        return counts + here.sum(0, dtype=jnp.int32)

    return (fori_loop(0, count, count_contacts, jnp.zeros((n, *active.shape[1:]), jnp.int32)) <= 1).all()


def _solve_each(
    rows: ContactJacobian,
    V: Array,
    target: Array,
    mu: Array,
    active: Array,
    tolerance: float,
    count: Array,
    fixed_p_n: Array | None,
) -> SeparateSolution:
    lanes = active.shape[1:]

    def clean(c: Array, x: Array) -> Array:
        return jnp.where(block(active, c), block(x, c), 0)

    def free_velocity(c: Array, carry: tuple[Vec3, Array]) -> tuple[Vec3, Array]:
        u, limit = carry
        J, drift = jax.tree.map(lambda x: clean(c, x), (rows.J, rows.drift))
        own, most = _free_velocity(J, gather(V, block(rows.tree, c), 1), drift, clean(c, target))
        largest = jnp.maximum(jnp.maximum(jnp.abs(own.x), jnp.abs(own.y)), jnp.abs(own.z))
        here = tolerance * largest + 8 * jnp.finfo(V.dtype).eps * most
        return jax.tree.map(lambda x, y: put(x, y, c), (u, limit), (own, here))

    none, zero = jnp.zeros_like(target), jnp.zeros(lanes, V.dtype)
    u, limit = fori_loop(0, count, free_velocity, (Vec3(none, none, none), none))

    def solve(c: Array, carry: tuple[Vec3, Array, Array]) -> tuple[Vec3, Array, Array]:
        p, V, well = carry
        K = jax.tree.map(lambda x, unit: jnp.where(block(active, c), block(x, c), unit), rows.K, UNIT)
        start, free = Vec3(zero, zero, zero), jax.tree.map(lambda x: block(x, c), u)
        if fixed_p_n is not None:  # a fixed impulse changes no velocity
            start = Vec3(zero, zero, clean(c, fixed_p_n))
            free = free - Vec3(zero, zero, K.zz * start.z)
        own, solved = _iterate(_Contact(K, free, clean(c, mu)), start, block(limit, c))
        Y = jax.tree.map(lambda x: clean(c, x), rows.Y)
        return (
            jax.tree.map(lambda x, y: put(x, y, c), p, own),
            _add_impulse(V, Y, own, block(rows.tree, c)),
            well & solved,
        )

    p, after, well = fori_loop(0, count, solve, (Vec3(none, none, none), V, jnp.ones(lanes, bool)))
    return SeparateSolution(p, after, well.all())


UNIT = Sym3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)


@fence
def _free_velocity(J: Vec3, v: Array, drift: Vec3, target: Array) -> tuple[Vec3, Array]:
    """Return u less the target, and the largest sum of absolute values in u, the scale of its rounding error."""
    u = jax.tree.map(lambda row, own: (row * v).sum((0, 1)) + own, J, drift)
    parts = [(jnp.abs(row) * jnp.abs(v)).sum((0, 1)) for row in J.xyz]
    return Vec3(u.x, u.y, u.z - target), jnp.maximum(jnp.maximum(parts[0], parts[1]), parts[2])


def _iterate(contact: _Contact, start: Vec3, limit: Array) -> tuple[Vec3, Array]:
    def iteration(state: tuple[Array, Vec3, Array]) -> tuple[Array, Vec3, Array]:
        k, p, _ = state
        p, distance = _relax(contact, p)
        return k + 1, p, distance

    begin = (jnp.int32(0), start, jnp.full_like(limit, jnp.inf))
    _, p, distance = jax.lax.while_loop(lambda s: (s[0] < ITERATIONS) & (s[2] > limit).any(), iteration, begin)
    return p, distance <= limit


@fence
def _relax(contact: _Contact, p: Vec3) -> tuple[Vec3, Array]:
    K, u, mu = contact
    p = coulomb.Relaxation.of(K, mu).relax(p, u + K @ p)
    return p, coulomb.distance(K, p, u + K @ p, mu)


@fence
def _add_impulse(V: Array, Y: Vec3, p: Vec3, tree: Array) -> Array:
    change = Y.x * p.x + Y.y * p.y + Y.z * p.z
    indices = jnp.arange(len(V), dtype=tree.dtype).reshape(-1, *(1,) * (V.ndim - 1))
    for side in range(len(tree)):
        V = V + jnp.where(indices == tree[side], change[side], 0)
    return V
