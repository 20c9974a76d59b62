"""Few contacts: Newton's method (`search.py`) on their impulses, with W = J M^-1 J^T as one small dense matrix.

    (1 + D W) (p' - p) = q - p        D, q: of the law linearized around p, p' = q - D du

The number of unknowns then depends on the contacts only, not on the degrees of freedom of the trees: a figure with 30
degrees of freedom that stands on two feet has 6 to 24 unknowns. `many.py` solves systems of more than `FEW` contacts.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import empty, fori_loop

from ...engine.algebra.vec3 import Sym3, Vec3
from . import coulomb, gauss
from .blocks import block, indices_of, put
from .many import ActiveRows
from .search import SWEEPS

FEW = 13  # contacts: 39 unknowns and a right side are five vectors of 64 bytes


class ImpulseSystem(NamedTuple):
    """A `search.System` of `count` () contacts in arrays of length FEW, padded with K = 1 and zeros.

    W: (3 FEW, 3 FEW) Delassus matrix [1/kg]. Row 3 c + k is the change of u by a unit impulse at contact c along k,
        t1 of all contacts first, then t2, then n. Rows of the padding may hold anything.
    """

    K: Sym3
    mu: Array
    free: Vec3
    W: Array
    count: Array

    @property
    def large(self) -> bool:
        return False

    def velocity_change(self, p: Vec3) -> Vec3:
        flat = jnp.stack(p.xyz, 1).reshape(-1)
        push = lambda r, u: u + block(flat, r) * block(self.W, r)  # noqa: E731
        return _by_components(fori_loop(0, 3 * self.count, push, jnp.zeros_like(flat)))

    def newton(self, law: coulomb.Linear, p: Vec3) -> Vec3:
        """Take Newton's step with the unknowns p_t' - slide p_n' along t.

        With p_t' the difference of D's rows of t and n would be lost in rounding.
        Where D is 0 (open contacts, the tangents of limits), p' = q is known and not solved for.
        """
        N, room = len(self.W), len(law.n)
        indices = jnp.arange(N + 1, dtype=jnp.int32)
        (xx, yy, xy), none = law.tt, jnp.zeros_like(law.n)
        D = jnp.stack([xx, xy, none, xy, yy, none, none, none, law.nn], 1).reshape(-1, 3)
        slide = jnp.stack([*law.slide, none], 1).reshape(-1)
        tx, ty = (t + s * p.z for t, s in zip(law.t, law.slide, strict=True))
        right = jnp.stack([tx - p.x, ty - p.y, law.n - p.z], 1).reshape(-1)
        tied = ((D != 0).any(1) | (slide != 0)) & (indices[:N] < 3 * self.count)
        which, count = indices_of(tied)
        columns = lambda x: x.reshape(-1, 3).T.reshape(-1)  # noqa: E731
        known = columns(jnp.where(tied | (indices[:N] >= 3 * self.count), 0, right))
        unknown = jnp.append(columns(tied), True)

        def row(i: Array, A: Array) -> Array:
            r = block(which, i)
            c, k = r // 3, r % 3
            d = block(D, r)
            made = d[0] * block(self.W, 3 * c) + d[1] * block(self.W, 3 * c + 1) + d[2] * block(self.W, 3 * c + 2)
            made = made + jnp.where(indices[:N] == k * room + c, 1, 0)
            made = made - jnp.where(indices[:N] == 2 * room + c, block(slide, r), 0)
            return put(A, jnp.where(unknown, jnp.append(made, block(right, r) - (made * known).sum()), 0), i)

        A = fori_loop(0, count, row, empty((N, N + 1), none.dtype))
        return p + _by_components(gauss.solve(A, count) + known)

    def sweeps(self, p: Vec3) -> Vec3:
        p = coulomb.project(p, self.mu)

        relaxations = coulomb.Relaxation.of(self.K, self.mu)

        def relax(n: Array, carry: tuple[Vec3, Vec3]) -> tuple[Vec3, Vec3]:
            p, u = carry
            c = n % self.count
            relaxation, own, here = jax.tree.map(lambda x: block(x, c), (relaxations, p, u))
            new = relaxation.relax(own, here)
            d = new - own
            for k, part in enumerate(d.xyz):
                u = u + _by_components(part * block(self.W, 3 * c + k))
            return jax.tree.map(lambda x, y: put(x, y, c), p, new), u

        return fori_loop(0, SWEEPS * self.count, relax, (p, self.free + self.velocity_change(p)))[0]


def first_few(which: Array) -> Array:
    """Return the first FEW of these indices, padded with 0."""
    return which[:FEW] if len(which) >= FEW else jnp.append(which, jnp.zeros(FEW - len(which), jnp.int32))


def impulse_system(contacts: ActiveRows, which: Array, K: Sym3, mu: Array, free: Vec3, n: int) -> ImpulseSystem:
    """Return the system of the first contacts.

    which: (FEW,) their indices.
    K, mu, free: (FEW,) as in `ImpulseSystem`.
    n: the number of trees.
    """
    return ImpulseSystem(K, mu, free, delassus(contacts, which, n), contacts.count)


def delassus(contacts: ActiveRows, which: Array, n: int) -> Array:
    """Return the Delassus matrix W of the first contacts, as in `ImpulseSystem`, with room for all of `which`."""
    (_, sides, w), room, dtype = contacts.J.x.shape, len(which), contacts.J.x.dtype
    tree = jnp.full((sides, 3 * room), n, jnp.int32)
    J = jnp.zeros((sides, w, 3 * room), dtype)
    zero = jnp.int32(0)

    def fill_column(c: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        J, tree = carry
        at = block(which, c)
        for k, x in enumerate(contacts.J.xyz):
            J = jax.lax.dynamic_update_slice(J, block(x, at)[:, :, None], (zero, zero, k * room + c))
            tree = jax.lax.dynamic_update_slice(tree, block(contacts.tree, at)[:, None], (zero, k * room + c))
        return J, tree

    J, tree = fori_loop(0, contacts.count, fill_column, (J, tree))

    def fill_row(c: Array, W: Array) -> Array:
        at = block(which, c)
        own = block(contacts.tree, at)
        for k, x in enumerate(contacts.Y.xyz):
            y = block(x, at)
            if sides == 1:
                u = (J[0] * y[0][:, None]).sum(0)
            else:
                u = jnp.zeros(3 * room, dtype)
                for i, j in itertools.product(range(2), repeat=2):
                    meet = (tree[i] == own[j]) & (own[j] < n)
                    u = u + jnp.where(meet, (J[i] * y[j][:, None]).sum(0), 0)
            W = put(W, u, 3 * c + k)
        return W

    return fori_loop(0, contacts.count, fill_row, empty((3 * room, 3 * room), dtype))


def _by_components(x: Array) -> Vec3:
    return Vec3(*x.reshape(3, -1))
