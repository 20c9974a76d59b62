"""Many contacts: Newton's method (`search.py`) on the velocities of the trees, whose equations are sparse.

    (1 + Y D J) dV = Y (q - p),    p' = q - D J dV

A contact joins two trees at most, so this matrix has a block for each tree and for each pair that meets
(`elimination.py`). It is regular where W = J Y is not.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import cond, fori_loop

from ...engine.algebra.vec3 import Sym3, Vec3
from . import coulomb
from .blocks import block, put
from .elimination import Plan, pairs_room, solve
from .search import SWEEPS


class Ends(NamedTuple):
    """What contacts push, and how.

    tree: (C, 2), J, Y: (C, 2, w), as in `ContactJacobian`; 1 in place of 2 where there is but one tree.
    which: (C,) the contacts that are active, the first `count` (). Of others nothing is read.
    """

    tree: Array
    J: Vec3
    Y: Vec3
    which: Array
    count: Array


class Many(NamedTuple):
    """A `search.System` of all contacts, arrays (C); where they are not active free is 0, and K is 1.

    still: (T + 1, w) zeros.
    """

    K: Sym3
    mu: Array
    free: Vec3
    ends: Ends
    plan: Plan
    still: Array

    @property
    def large(self) -> bool:
        return True

    def moved(self, p: Vec3) -> Vec3:
        return velocities(self.ends, pushed(self.ends, self.still, p))

    def newton(self, law: coulomb.Linear, p: Vec3) -> Vec3:
        """Where there is no room for the plan: sweeps."""

        def step() -> Vec3:
            r = pushed(self.ends, self.still, law.p - p)
            dV = solve(self.plan, coupled(self.ends, self.plan, law), r)
            return law.p - law.across(velocities(self.ends, dV))

        return cond(self.plan.fits, step, lambda: self.sweeps(p))

    def sweeps(self, p: Vec3) -> Vec3:
        p = coulomb.projected(p, self.mu)
        ends, relaxations = self.ends, coulomb.Relaxation.of(self.K, self.mu)

        def relax(n: Array, carry: tuple[Vec3, Array]) -> tuple[Vec3, Array]:
            p, V = carry
            c = block(ends.which, n)
            relaxation, old, free = jax.tree.map(lambda x: block(x, c), (relaxations, p, self.free))
            new = relaxation.relaxed(old, _row(ends, c, V) + free)
            return jax.tree.map(lambda x, y: put(x, y, c), p, new), _push(ends, c, V, new - old)

        sweep = lambda _, carry: fori_loop(0, ends.count, relax, carry)  # noqa: E731
        return fori_loop(0, SWEEPS, sweep, (p, pushed(ends, self.still, p)))[0]


def velocities(ends: Ends, V: Array) -> Vec3:
    """J V, (C), of V (T + 1, w)."""

    def read(k: Array, u: Vec3) -> Vec3:
        c = block(ends.which, k)
        return jax.tree.map(lambda x, y: put(x, y, c), u, _row(ends, c, V))

    none = jnp.zeros(len(ends.tree), V.dtype)
    return fori_loop(0, ends.count, read, Vec3(none, none, none))


def pushed(ends: Ends, V: Array, p: Vec3) -> Array:
    """V + Y p."""

    def push(k: Array, V: Array) -> Array:
        c = block(ends.which, k)
        return _push(ends, c, V, jax.tree.map(lambda x: block(x, c), p))

    return fori_loop(0, ends.count, push, V)


def coupled(ends: Ends, plan: Plan, law: coulomb.Linear) -> Array:
    """1 + Y D J: its blocks at their slots, each transposed."""
    n, (_, sides, w) = len(plan.order), ends.J.x.shape
    unit = jnp.eye(w, dtype=law.nn.dtype)

    def clear(at: Array, H: Array) -> Array:
        return put(H, jnp.where(at < n, unit, 0), at)

    H = jax.lax.empty((n + 2 * pairs_room(n), w, w), unit.dtype)
    H = fori_loop(0, n + 2 * block(plan.first, plan.count), clear, H)
    D: Any = law.tt, law.slide, law.nn

    def add(part: Array, H: Array) -> Array:
        c, i, j = block(ends.which, part // sides**2), part // sides % sides, part % sides
        a, b = block(ends.tree, c, i), block(ends.tree, c, j)

        def both_move(H: Array) -> Array:
            Y, J = (jax.tree.map(lambda x, s=s: block(x, c, s), y) for y, s in ((ends.Y, i), (ends.J, j)))
            (xx, yy, xy), (xn, yn), nn = jax.tree.map(lambda x: block(x, c), D)
            z = nn * J.z
            x, y = xx * J.x + xy * J.y + xn * z, xy * J.x + yy * J.y + yn * z
            at = block(plan.slot, a, b)
            return put(H, block(H, at) + (x[:, None] * Y.x + y[:, None] * Y.y + z[:, None] * Y.z), at)

        return cond((a < n) & (b < n), both_move, lambda H: H, H)

    return fori_loop(0, sides**2 * ends.count, add, H)


def _row(ends: Ends, c: Array, V: Array) -> Vec3:
    """J V of one contact."""
    own = jax.tree.map(lambda x: block(x, c), ends.J)
    moves = [block(V, block(ends.tree, c, jnp.int32(i))) for i in range(ends.tree.shape[1])]
    return jax.tree.map(lambda x: functools.reduce(operator.add, map(operator.mul, x, moves)).sum(0), own)


def _push(ends: Ends, c: Array, V: Array, p: Vec3) -> Array:
    """V after an impulse p at one contact."""
    Y = jax.tree.map(lambda x: block(x, c), ends.Y)
    change = Y.x * p.x + Y.y * p.y + Y.z * p.z
    for i in range(ends.tree.shape[1]):
        at = block(ends.tree, c, jnp.int32(i))
        V = put(V, block(V, at) + change[i], at)
    return V
