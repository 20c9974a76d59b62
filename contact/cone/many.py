"""Many contacts: Newton's method (`search.py`) on the velocities of the trees, whose equations are sparse.

    (1 + Y D J) dV = Y (q - p),    p' = q - D J dV

A contact joins two trees at most, so this matrix has a block for each tree and for each pair that meets
(`elimination.py`). It is regular where W = J Y is not.
"""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import cond, fori_loop, while_loop

from ...engine.algebra.vec3 import Sym3, Vec3
from . import coulomb
from .blocks import block, put
from .elimination import EliminationOrder, pairs_room, solve
from .search import SWEEPS


class ActiveRows(NamedTuple):
    """The Jacobian of the active contacts.

    tree: (C, 2) trees, as in `ContactJacobian`; (C, 1) in a scene of one tree.
    J: (C, 2, w) as in `ContactJacobian`.
    Y: (C, 2, w) as in `ContactJacobian`.
    which: (C,) indices of the active contacts, the first `count` (). Other rows are not read.
    """

    tree: Array
    J: Vec3
    Y: Vec3
    which: Array
    count: Array


class VelocitySystem(NamedTuple):
    """A `search.System` of all contacts, arrays (C); inactive ones have free = 0 and K = 1.

    contacts: Jacobian of the active contacts.
    plan: order of elimination of the trees.
    still: (T + 1, w) zeros.
    negligible: (C,) changes of velocity; a sweep that makes no larger one is the last [m/s].
    """

    K: Sym3
    mu: Array
    free: Vec3
    contacts: ActiveRows
    plan: EliminationOrder
    still: Array
    negligible: Array

    @property
    def large(self) -> bool:
        return True

    def velocity_change(self, p: Vec3) -> Vec3:
        return contact_velocities(self.contacts, add_impulses(self.contacts, self.still, p))

    def newton(self, law: coulomb.Linear, p: Vec3) -> Vec3:
        """Take Newton's step, or sweeps if the elimination does not fit its memory."""

        def step() -> Vec3:
            r = add_impulses(self.contacts, self.still, law.p - p)
            dV = solve(self.plan, system_matrix(self.contacts, self.plan, law), r)
            return law.p - law.across(contact_velocities(self.contacts, dV))

        return cond(self.plan.fits, step, lambda: self.sweeps(p))

    def sweeps(self, p: Vec3) -> Vec3:
        """Run Gauss-Seidel sweeps with Nesterov's acceleration (1983), restarted when the way turns back (O'Donoghue &
        Candes 2015)."""
        p = coulomb.project(p, self.mu)
        contacts, relaxations = self.contacts, coulomb.Relaxation.of(self.K, self.mu)
        kt, kn = coulomb.scales(self.K)

        def relax(n: Array, carry: tuple[Vec3, Array, Array]) -> tuple[Vec3, Array, Array]:
            p, V, moves = carry
            c = block(contacts.which, _alternate(n, contacts.count))
            relaxation, old, free = jax.tree.map(lambda x: block(x, c), (relaxations, p, self.free))
            new = relaxation.relax(old, _velocity_of_contact(contacts, c, V) + free)
            d = new - old
            far = jnp.maximum(jnp.maximum(jnp.abs(d.x), jnp.abs(d.y)) * block(kt, c), jnp.abs(d.z) * block(kn, c))
            moves = moves | (far > block(self.negligible, c))
            return jax.tree.map(lambda x, y: put(x, y, c), p, new), _add_impulse(contacts, c, V, d), moves

        def sweep(state: _Sweeping) -> _Sweeping:
            n, ahead, before, t, _ = state
            *after, moves = fori_loop(0, contacts.count, relax, (*ahead, jnp.array(False)))
            after = after[0], after[1]
            way, back = after[0] - before[0], ahead[0] - after[0]
            turned = ((back.x * way.x + back.y * way.y) * kt + back.z * way.z * kn).sum(0) > 0
            longer = (1 + jnp.sqrt(1 + 4 * t * t)) / 2
            part = jnp.where(turned, 0, (t - 1) / longer)
            ahead = jax.tree.map(lambda x, y: x + part * (x - y), after, before)
            return _Sweeping(n + 1, ahead, after, jnp.where(turned, 1, longer), moves)

        start = p, add_impulses(contacts, self.still, p)
        first = _Sweeping(jnp.int32(0), start, start, jnp.ones((), kn.dtype), jnp.array(True))
        return while_loop(lambda x: x.moves & (x.number < SWEEPS), sweep, first).before[0]


class _Sweeping(NamedTuple):
    """number: () sweeps so far.
    ahead, before: p and V at the start of the next sweep, and those after the last one.
    t: () Nesterov's sequence.
    moves: () bool, whether the last sweep changed a velocity by more than `negligible`.
    """

    number: Array
    ahead: tuple[Vec3, Array]
    before: tuple[Vec3, Array]
    t: Array
    moves: Array


def _alternate(n: Array, count: Array) -> Array:
    """Return the n-th of `count` rows in an order that alternates between both halves.

    A processor computes two contacts at once if they have no body in common, in two thirds of the time.
    """
    return n % 2 * ((count + 1) // 2) + n // 2


def contact_velocities(contacts: ActiveRows, V: Array) -> Vec3:
    """Return J V (C), from V (T + 1, w)."""

    def read(k: Array, u: Vec3) -> Vec3:
        c = block(contacts.which, k)
        return jax.tree.map(lambda x, y: put(x, y, c), u, _velocity_of_contact(contacts, c, V))

    none = jnp.zeros(len(contacts.tree), V.dtype)
    return fori_loop(0, contacts.count, read, Vec3(none, none, none))


def add_impulses(contacts: ActiveRows, V: Array, p: Vec3) -> Array:
    """Return V + Y p."""

    def push(k: Array, V: Array) -> Array:
        c = block(contacts.which, k)
        return _add_impulse(contacts, c, V, jax.tree.map(lambda x: block(x, c), p))

    return fori_loop(0, contacts.count, push, V)


def system_matrix(contacts: ActiveRows, plan: EliminationOrder, law: coulomb.Linear) -> Array:
    """Return the blocks of 1 + Y D J at their slots, each transposed."""
    n, (_, sides, w) = len(plan.order), contacts.J.x.shape
    unit = jnp.eye(w, dtype=law.nn.dtype)

    def clear(at: Array, H: Array) -> Array:
        return put(H, jnp.where(at < n, unit, 0), at)

    H = jax.lax.empty((n + 2 * pairs_room(n), w, w), unit.dtype)
    H = fori_loop(0, n + 2 * block(plan.first, plan.count), clear, H)
    D = law.tt, law.slide, law.nn

    def add(part: Array, H: Array) -> Array:
        c, i, j = block(contacts.which, part // sides**2), part // sides % sides, part % sides
        a, b = block(contacts.tree, c, i), block(contacts.tree, c, j)

        def both_move(H: Array) -> Array:
            Y, J = (jax.tree.map(lambda x, s=s: block(x, c, s), y) for y, s in ((contacts.Y, i), (contacts.J, j)))
            (xx, yy, xy), (xn, yn), nn = jax.tree.map(lambda x: block(x, c), D)
            z = nn * J.z
            x, y = xx * J.x + xy * J.y + xn * z, xy * J.x + yy * J.y + yn * z
            at = block(plan.slot, a, b)
            return put(H, block(H, at) + (x[:, None] * Y.x + y[:, None] * Y.y + z[:, None] * Y.z), at)

        return cond((a < n) & (b < n), both_move, lambda H: H, H)

    return fori_loop(0, sides**2 * contacts.count, add, H)


def _velocity_of_contact(contacts: ActiveRows, c: Array, V: Array) -> Vec3:
    """Return J V of one contact."""
    own = jax.tree.map(lambda x: block(x, c), contacts.J)
    moves = [block(V, block(contacts.tree, c, jnp.int32(i))) for i in range(contacts.tree.shape[1])]
    return jax.tree.map(lambda x: functools.reduce(operator.add, map(operator.mul, x, moves)).sum(0), own)


def _add_impulse(contacts: ActiveRows, c: Array, V: Array, p: Vec3) -> Array:
    """Return V after an impulse p at one contact."""
    Y = jax.tree.map(lambda x: block(x, c), contacts.Y)
    change = Y.x * p.x + Y.y * p.y + Y.z * p.z
    for i in range(contacts.tree.shape[1]):
        at = block(contacts.tree, c, jnp.int32(i))
        V = put(V, block(V, at) + change[i], at)
    return V
