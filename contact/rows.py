"""Rows: contacts as rows of the joint velocities. u = J v is how they move, dv = Y p what their impulses do.

A contact touches two trees at most (`engine/dynamics/trees.py`), so its rows are as wide as two trees. K = J Y is
Holck's collision matrix (2.16): free bodies, trees, statics, the same tree twice (K11 - K12 - K21 + K22, Mirtich 1996,
section 4.4) and limits (Holck, chapter 4) differ in nothing but which entries of J vanish.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.bounded import of_the_first
from ..engine.algebra.fence import lane_programs, settled
from ..engine.algebra.spatial import Motion
from ..engine.algebra.vec3 import Mat3, Sym3, Vec3
from ..engine.closures.blocks import inverse_inertias
from ..engine.compaction import up_to_the_last
from ..engine.dynamics.kinematics import place
from ..engine.dynamics.trees import Trees, dof_motions, trees_of
from ..engine.forest import Forest
from ..engine.model import Model
from .contacts import Contacts
from .picking import picked, summed

VECTOR = 64  # bytes: so many contacts at a time are looked at
UNMOVED = 1e4  # times eps squared: what rounding leaves of K_nn, by what moves across
NUMBERS = 768  # of J in one direction: XLA's programs do not count rows that have so few in all


class Rows(NamedTuple):
    """C contacts against T trees of at most w degrees of freedom each.

    tree: (C, 2, *batch) trees that carry A and B; T where there is none: the world, or the same tree as A's. Where
        there is but one tree, (C, 1, *batch), and all of a contact is its.
    J: components (C, 2 or 1, w, *batch), one a direction t1, t2, n: the contact's velocity u by those trees'
        velocities.
    Y: the same: M^-1 J^T, what unit impulses along t1, t2, n change in them.
    K: (C, *batch), J Y. A limit has one row, n; its K.xx and K.yy are 1.
    drift: (C, *batch) the part of u that is no joint's: surfaces of statics that move as conveyors do [m/s].
    """

    tree: Array
    J: Vec3
    Y: Vec3
    K: Sym3
    drift: Vec3

    @property
    def still(self) -> Rows:
        """Without drift: what changes of the joint velocities do."""
        return self._replace(drift=jax.tree.map(jnp.zeros_like, self.drift))


def rows_of(model: Model, q: Array, contacts: Contacts, inverse: Array | None = None) -> Rows:
    """The rows of contacts at the coordinates q (*batch, nq).

    inverse: `inverse_at` q, where it is known.
    """
    trees = trees_of(model.topology)
    forest = Forest(model.topology, contacts.gap.shape[1:], q.dtype)
    placed = place(forest, model, q)
    motions = jax.tree.map(lambda x: x[jnp.minimum(trees.dofs, len(x) - 1)], dof_motions(forest, placed))
    inverse = settled(inverse_inertias(forest, model, placed)) if inverse is None else inverse
    asked = contacts._replace(code=None, needed=None)  # type: ignore[arg-type]
    number = jnp.arange(1, len(contacts.active) + 1, dtype=jnp.int32).reshape(-1, *(1,) * (contacts.active.ndim - 1))
    last = jnp.where(contacts.active, number, 0).max()
    return of_the_first(VECTOR // q.dtype.itemsize, _of_contacts, last, (model, motions, inverse), asked)


def _of_contacts(given: tuple[Model, tuple[Motion, Vec3], Array], contacts: Contacts) -> Rows:
    """given: the model, what each degree of freedom of each tree moves and where (T, w, *batch), M^-1 of the trees."""
    model, motions, inverse = given
    trees, limit = trees_of(model.topology), contacts.is_limit
    tree_a, tree_b = settled(tuple(jnp.asarray(trees.of_link)[link] for link in (contacts.link_a, contacts.link_b)))
    by_a, by_b = _columns(model, motions, trees, contacts)
    if trees.n == 1:
        tree = jnp.zeros_like(tree_a)[:, None]
        J = settled(_with_limits(trees, contacts, jax.tree.map(lambda a, b: (a - b)[:, None], by_a, by_b)))
        Y = jax.tree.map(lambda x: sum(inverse[0, k] * x[:, :, k, None] for k in range(trees.w)), J)
    else:
        same = (tree_a == tree_b) & ~limit
        first = jax.tree.map(lambda a, b: a - jnp.where(same[:, None], b, 0), by_a, by_b)
        second = jax.tree.map(lambda b: jnp.where((same | limit)[:, None], 0, -b), by_b)
        J = settled(_with_limits(trees, contacts, jax.tree.map(lambda *x: jnp.stack(x, 1), first, second)))
        tree = jnp.stack([tree_a, jnp.where(same | limit, trees.n, tree_b)], 1)
        M = picked(inverse, jnp.minimum(tree, trees.n - 1), 2)
        Y = jax.tree.map(lambda x: (M * x[:, :, None]).sum(3), J)
    return Rows(tree, J, Y, _collision_matrix(J, Y, limit), contacts.frame @ contacts.surface)


def movable(contacts: Contacts, rows: Rows) -> Contacts:
    """Without contacts that no impulse moves along the normal, to rounding: of two links of a tree whose joints keep
    them where they are (a wheel that reaches into the chassis that steers it)."""
    K, eps = rows.K, jnp.finfo(rows.K.zz.dtype).eps
    least = UNMOVED * eps**2 * (K.xx + K.yy)
    held = ~contacts.is_limit & (K.zz <= least) & jnp.isfinite(least)  # a K that is no number is not hidden
    return contacts._replace(active=contacts.active & ~held)


def inverse_at(model: Model, q: Array) -> Array:
    """M^-1 of all trees at q (*batch, nq), (T, w, w, *batch)."""
    forest = Forest(model.topology, q.shape[:-1], q.dtype)
    return settled(inverse_inertias(forest, model, place(forest, model, q)))


def joint_rows(model: Model, inverse: Array, dofs: Sequence[int], drift: Array) -> Rows:
    """Rows of single degrees of freedom (G,): their velocities along t1, and nothing else.

    inverse: `inverse_at` the coordinates.  drift: (G, *batch) along t1.
    """
    trees = trees_of(model.topology)
    tree, place = np.divmod(trees.block[np.asarray(dofs)], trees.w)
    lanes = (1,) * (drift.ndim - 1)
    sides = min(trees.n, 2)
    own = np.zeros((len(place), sides, trees.w, *lanes))
    own[np.arange(len(place)), 0, place] = 1
    J = jnp.broadcast_to(jnp.asarray(own, drift.dtype), (*own.shape[:3], *drift.shape[1:]))
    answer = jnp.stack([jnp.broadcast_to(inverse[t, :, k], J.shape[2:]) for t, k in zip(tree, place, strict=True)])
    Y = jnp.stack([answer, jnp.zeros_like(answer)][:sides], 1)
    still, none, unit = jnp.zeros_like(J), jnp.zeros_like(drift), jnp.ones_like(drift)
    k = (J * Y).sum((1, 2))
    ends = np.stack([tree, np.full_like(tree, trees.n)][:sides], 1).reshape(-1, sides, *lanes)
    return Rows(
        jnp.broadcast_to(jnp.asarray(ends, jnp.int32), (len(ends), sides, *drift.shape[1:])),
        Vec3(J, still, still), Vec3(Y, still, still), Sym3(k, k, unit, none, none, none), Vec3(drift, none, none),
    )  # fmt: skip


def relative(rows: Rows, V: Array, every: bool = False) -> Vec3:
    """u (C, *batch): velocity of A's point less B's in the contact frames [m/s], from V (T + 1, w, *batch).
    every: all rows are computed, not up to the last: what has a transpose may not count."""
    few = len(rows.tree) if every else _few(rows.J.x)
    return up_to_the_last(_relative, _real(rows), V, rows._replace(Y=None, K=None), few)  # type: ignore[arg-type]


def _relative(V: Array, rows: Rows) -> Vec3:
    v = of_its_trees(rows, V)
    return jax.tree.map(lambda row, drift: (row * v).sum((1, 2)) + drift, rows.J, rows.drift)


def _real(rows: Rows) -> Array:
    """(C, *batch) contacts that move anything: those that are not there are zeros."""
    if rows.tree.shape[1] == 1:
        return (rows.K.xx != 0) | (rows.K.yy != 0) | (rows.K.zz != 0)
    return rows.tree[:, 0] != rows.tree[:, 1]


def _few(J: Array) -> int:
    """So many rows like these are not counted first."""
    return VECTOR // J.dtype.itemsize if lane_programs() else NUMBERS // math.prod(J.shape[1:3])


def of_its_trees(rows: Rows, x: Array) -> Array:
    """What of x (T, ..., *batch) belongs to each contact's trees: (C, 2, ..., *batch), or (1, 1, ..., *batch) where
    there is but one tree."""
    if rows.tree.shape[1] == 1:
        return x[None, :1]
    return picked(x, rows.tree, x.ndim - rows.tree.ndim + 1)


def applied(rows: Rows, V: Array, p: Vec3, every: bool = False) -> Array:
    """V (T + 1, w, *batch) after impulses p (C, *batch) in the contact frames [N s], all at once.  every: as in
    `relative`."""
    return V + _together(rows, rows.Y, p, len(V), every)


def joint_impulses(rows: Rows, p: Vec3, n: int) -> Array:
    """J^T p in tree blocks (n, w, *batch): what impulses p (C, *batch) are along the joints [N m s, N s]."""
    return _together(rows, rows.J, p, n)


def _together(rows: Rows, columns: Vec3, p: Vec3, n: int, every: bool = False) -> Array:
    real, few = _real(rows), len(rows.tree) if every else _few(columns.x)
    each = up_to_the_last(_pushed, real, None, (columns, p), few)
    if rows.tree.shape[1] == 1:
        return jnp.concatenate([each.sum(0), jnp.zeros_like(each, shape=(n - 1, *each.shape[2:]))])
    real, own = jnp.repeat(real, 2, 0), rows.tree.reshape(-1, *rows.tree.shape[2:])
    return summed(each.reshape(-1, *each.shape[2:]), own, n, real if len(own) > 2 * few else None)


def _pushed(_: None, rows: tuple[Vec3, Vec3]) -> Array:
    columns, p = rows
    x, y, z = (impulse[:, None, None] for impulse in p.xyz)
    return columns.x * x + columns.y * y + columns.z * z


def _columns(model: Model, motions: tuple[Motion, Vec3], trees: Trees, contacts: Contacts) -> tuple[Vec3, Vec3]:
    """What each degree of freedom of a contact's trees gives A's point and B's, (C, w, *batch) in the contact frame."""
    s, origin = motions
    free = set(model.topology.joints) == {"floating"} and trees.w == 6  # loops may tie bodies to one tree

    def column(link: Array) -> Vec3:
        tree = jnp.minimum(jnp.asarray(trees.of_link)[link], trees.n - 1)
        if free:  # turning about the axes of the world, and moving along them: nothing to look up but where it is
            o = jax.tree.map(lambda x: picked(x[:, 0], tree, 0), origin)
            velocity = settled(_by_free_body(contacts.frame, settled(contacts.point - o)))
        else:
            frame, point = jax.tree.map(lambda x: x[:, None], (contacts.frame, contacts.point))
            own, o = jax.tree.map(lambda x: picked(x, tree, 1), (s, origin))
            velocity = frame @ own.at(point - o).v
        moved = jnp.moveaxis(jnp.asarray(trees.moves)[link], -1, 1)
        return jax.tree.map(lambda x: jnp.where(moved, x, 0), velocity)

    return column(contacts.link_a), column(contacts.link_b)


def _by_free_body(frame: Mat3, r: Vec3) -> Vec3:
    """What (w, v) of a floating joint give a point r from its origin, v + w x r, along the rows of the frame."""
    return Vec3(*(jnp.stack([*r.cross(row).xyz, *row.xyz], 1) for row in frame.rows))


def _with_limits(trees: Trees, contacts: Contacts, J: Vec3) -> Vec3:
    """J with limits' rows: the joint's own velocity along n, nothing along t1 and t2."""
    limit = contacts.is_limit[:, None, None]
    lanes = (1,) * (contacts.gap.ndim - 1)
    place = jnp.asarray(trees.block % trees.w)[contacts.dof][:, None, None]
    first = jnp.arange(J.x.shape[1]).reshape(1, -1, 1, *lanes) == 0
    own = first & (jnp.arange(trees.w).reshape(1, 1, -1, *lanes) == place)
    back = jnp.where(own, contacts.frame.zz[:, None, None], 0)
    return Vec3(jnp.where(limit, 0, J.x), jnp.where(limit, 0, J.y), jnp.where(limit, back, J.z))


def _collision_matrix(J: Vec3, Y: Vec3, limit: Array) -> Sym3:
    xx, yy, zz, xy, xz, yz = (
        (a * b).sum((1, 2))
        for a, b in ((J.x, Y.x), (J.y, Y.y), (J.z, Y.z), (J.x, Y.y), (J.x, Y.z), (J.y, Y.z))
    )  # fmt: skip
    return Sym3(jnp.where(limit, 1, xx), jnp.where(limit, 1, yy), zz, xy, xz, yz)
