"""The contact Jacobian J, the velocities of contacts u = J v, and the response dv = Y p to their impulses.

A contact touches at most two trees (`engine/dynamics/trees.py`), so J stores only the columns of these. K = J Y is
Holck's collision matrix (2.16). Free bodies, trees, statics, the same tree twice (K11 - K12 - K21 + K22, Mirtich 1996,
section 4.4) and joint limits (Holck, chapter 4) differ only in which entries of J vanish.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.bounded import map_first
from ..engine.algebra.fence import compute_once, lane_programs
from ..engine.algebra.spatial import Motion
from ..engine.algebra.vec3 import Mat3, Sym3, Vec3
from ..engine.compaction import map_to_last
from ..engine.dynamics.kinematics import propagate_poses
from ..engine.dynamics.trees import Trees, dof_motions, to_blocks, trees_of
from ..engine.forest import Forest
from ..engine.loops.forward import exact
from ..engine.loops.impulse import inverse_inertias
from ..engine.model import Model
from ..engine.results import BLOCKED, OK, gravest
from .contacts import Contacts
from .gather_scatter import gather, segment_sum

VECTOR = 64  # bytes of one SIMD vector: contacts are computed in groups that fill it
UNMOVED = 1e4  # times eps squared: a smaller K_nn / (K_xx + K_yy) is rounding error only
UNMOVED_BY_LOOPS = 16  # times eps: the same if loops reduce M^-1
NUMBERS = 768  # entries of J in one direction: XLA's programs compute all rows when J has no more


class ContactJacobian(NamedTuple):
    """The Jacobian of C contacts in T trees, each of at most w degrees of freedom.

    tree: (C, 2, *batch) the trees that carry A and B. T means none: the world, or the tree of A once more. A scene of
        one tree has (C, 1, *batch).
    J: components (C, 2 or 1, w, *batch), one for each direction t1, t2, n: u = J v.
    Y: components (C, 2 or 1, w, *batch), M^-1 J^T: the response of v to unit impulses along t1, t2, n.
    K: (C, *batch) the collision matrix J Y [1/kg]. A limit has only the row n; its K.xx and K.yy are 1.
    drift: (C, *batch) velocity of conveyor surfaces, the part of u that no joint makes [m/s].
    """

    tree: Array
    J: Vec3
    Y: Vec3
    K: Sym3
    drift: Vec3

    @property
    def still(self) -> ContactJacobian:
        """The same Jacobian without drift, to map changes of the joint velocities."""
        return self._replace(drift=jax.tree.map(jnp.zeros_like, self.drift))


@jax.jit  # traced once for all its calls
def jacobian_at(model: Model, q: Array, contacts: Contacts, inverse: Array | None = None) -> ContactJacobian:
    """Compute the Jacobian of contacts at the coordinates q (*batch, nq).

    inverse: `inverse_mass_matrix` at q, if it is known.
    """
    trees = trees_of(model.topology)
    forest = Forest(model.topology, contacts.gap.shape[1:], q.dtype)
    poses = propagate_poses(forest, model, q)
    motions = jax.tree.map(lambda x: x[jnp.minimum(trees.dofs, len(x) - 1)], dof_motions(forest, poses))
    inverse = inverse_mass_matrix(model, q) if inverse is None else inverse
    numbers = contacts._replace(code=None, needed=None)  # type: ignore[arg-type]
    number = jnp.arange(1, len(contacts.active) + 1, dtype=jnp.int32).reshape(-1, *(1,) * (contacts.active.ndim - 1))
    last = jnp.where(contacts.active, number, 0).max()
    return map_first(VECTOR // q.dtype.itemsize, _jacobian_of_contacts, last, (model, motions, inverse), numbers)


def _jacobian_of_contacts(given: tuple[Model, tuple[Motion, Vec3], Array], contacts: Contacts) -> ContactJacobian:
    """Compute the Jacobian of contacts.

    given: the model, motion axis and origin of each degree of freedom (T, w, *batch), and M^-1 of the trees.
    """
    model, motions, inverse = given
    trees, limit = trees_of(model.topology), contacts.is_limit
    tree_a, tree_b = compute_once(
        tuple(jnp.asarray(trees.of_link)[link] for link in (contacts.link_a, contacts.link_b))
    )
    by_a, by_b = _columns(model, motions, trees, contacts)
    if trees.n == 1:
        tree = jnp.zeros_like(tree_a)[:, None]
        J = compute_once(_with_limits(trees, contacts, jax.tree.map(lambda a, b: (a - b)[:, None], by_a, by_b)))
        Y = jax.tree.map(lambda x: sum(inverse[0, k] * x[:, :, k, None] for k in range(trees.w)), J)
    else:
        same = (tree_a == tree_b) & ~limit
        first = jax.tree.map(lambda a, b: a - jnp.where(same[:, None], b, 0), by_a, by_b)
        second = jax.tree.map(lambda b: jnp.where((same | limit)[:, None], 0, -b), by_b)
        J = compute_once(_with_limits(trees, contacts, jax.tree.map(lambda *x: jnp.stack(x, 1), first, second)))
        tree = jnp.stack([tree_a, jnp.where(same | limit, trees.n, tree_b)], 1)
        M = gather(inverse, jnp.minimum(tree, trees.n - 1), 2)
        Y = jax.tree.map(lambda x: (M * x[:, :, None]).sum(3), J)
    return ContactJacobian(tree, J, Y, _collision_matrix(J, Y, limit), contacts.frame @ contacts.surface)


def drop_immovable(model: Model, contacts: Contacts, rows: ContactJacobian, v: Array | None = None) -> Contacts:
    """Deactivate contacts that no impulse can move along the normal, up to rounding.

    These are two links of one tree whose joints fix the gap between them (a wheel that overlaps the chassis that steers
    it), and bodies that loops hold.
    v: (*batch, nv) velocities; if such a contact overlaps and closes with them, the code is BLOCKED.
    """
    K, eps = rows.K, jnp.finfo(rows.K.zz.dtype).eps
    rounding = UNMOVED_BY_LOOPS * eps if exact(model.topology) else UNMOVED * eps**2
    least = rounding * (K.xx + K.yy)
    immovable = ~contacts.is_limit & (K.zz <= least) & jnp.isfinite(least)  # NaN in K must stay visible
    kept = contacts._replace(active=contacts.active & ~immovable)
    if v is None or not exact(model.topology):
        return kept
    u_n = relative_velocity(rows, to_blocks(trees_of(model.topology), v), every=True).z
    blocked = contacts.active & immovable & (contacts.gap < -model.gap_band) & (u_n < -model.rest_speed)
    return kept._replace(code=gravest(kept.code, jnp.where(blocked.any(0), BLOCKED, OK)))


@jax.jit
def inverse_mass_matrix(model: Model, q: Array) -> Array:
    """Compute M^-1 of all trees at q (*batch, nq), (T, w, w, *batch)."""
    forest = Forest(model.topology, q.shape[:-1], q.dtype)
    return compute_once(inverse_inertias(forest, model, propagate_poses(forest, model, q)))


def joint_jacobian(model: Model, inverse: Array, dofs: Sequence[int], drift: Array) -> ContactJacobian:
    """Return the Jacobian of single degrees of freedom (G,): u.x is the joint's velocity, the other components are 0.

    inverse: `inverse_mass_matrix` at the coordinates.
    drift: (G, *batch) along t1 [rad/s, m/s].
    """
    trees = trees_of(model.topology)
    tree, column = np.divmod(trees.block[np.asarray(dofs)], trees.w)
    lanes = (1,) * (drift.ndim - 1)
    sides = min(trees.n, 2)
    own = np.zeros((len(column), sides, trees.w, *lanes))
    own[np.arange(len(column)), 0, column] = 1
    J = jnp.broadcast_to(jnp.asarray(own, drift.dtype), (*own.shape[:3], *drift.shape[1:]))
    response = jnp.stack([jnp.broadcast_to(inverse[t, :, k], J.shape[2:]) for t, k in zip(tree, column, strict=True)])
    Y = jnp.stack([response, jnp.zeros_like(response)][:sides], 1)
    still, none, unit = jnp.zeros_like(J), jnp.zeros_like(drift), jnp.ones_like(drift)
    k = (J * Y).sum((1, 2))
    ends = np.stack([tree, np.full_like(tree, trees.n)][:sides], 1).reshape(-1, sides, *lanes)
    return ContactJacobian(
        jnp.broadcast_to(jnp.asarray(ends, jnp.int32), (len(ends), sides, *drift.shape[1:])),
        Vec3(J, still, still), Vec3(Y, still, still), Sym3(k, k, unit, none, none, none), Vec3(drift, none, none),
    )  # fmt: skip


def relative_velocity(rows: ContactJacobian, V: Array, every: bool = False) -> Vec3:
    """Compute u (C, *batch), velocity of A's point less B's in the contact frames [m/s], from V (T + 1, w, *batch).

    every: compute all rows, not only up to the last active one. Functions that are transposed need this.
    """
    few = len(rows.tree) if every else _few_rows(rows.J.x)
    return map_to_last(_relative, _has_motion(rows), V, rows._replace(Y=None, K=None), few)  # type: ignore[arg-type]


def _relative(V: Array, rows: ContactJacobian) -> Vec3:
    v = gather_trees(rows, V)
    return jax.tree.map(lambda row, drift: (row * v).sum((1, 2)) + drift, rows.J, rows.drift)


def _has_motion(rows: ContactJacobian) -> Array:
    """Return whether a contact moves anything, (C, *batch); inactive rows are zeros."""
    if rows.tree.shape[1] == 1:
        return (rows.K.xx != 0) | (rows.K.yy != 0) | (rows.K.zz != 0)
    return rows.tree[:, 0] != rows.tree[:, 1]


def _few_rows(J: Array) -> int:
    """Return the number of rows that are computed without counting the active ones first."""
    return VECTOR // J.dtype.itemsize if lane_programs() else NUMBERS // math.prod(J.shape[1:3])


def gather_trees(rows: ContactJacobian, x: Array) -> Array:
    """Return x (T, ..., *batch) at the trees of each contact: (C, 2, ..., *batch); of one tree (1, 1, ..., *batch)."""
    if rows.tree.shape[1] == 1:
        return x[None, :1]
    return gather(x, rows.tree, x.ndim - rows.tree.ndim + 1)


def apply_impulses(rows: ContactJacobian, V: Array, p: Vec3, every: bool = False) -> Array:
    """Return V (T + 1, w, *batch) after all impulses p (C, *batch) in the contact frames [N s].

    every: as in `relative_velocity`.
    """
    return V + _sum_over_contacts(rows, rows.Y, p, len(V), every)


def joint_impulses(rows: ContactJacobian, p: Vec3, n: int) -> Array:
    """Return J^T p in tree blocks (n, w, *batch): impulses p (C, *batch) as joint impulses [N m s, N s]."""
    return _sum_over_contacts(rows, rows.J, p, n)


def _sum_over_contacts(rows: ContactJacobian, columns: Vec3, p: Vec3, n: int, every: bool = False) -> Array:
    real, few = _has_motion(rows), len(rows.tree) if every else _few_rows(columns.x)
    each = map_to_last(_times_impulses, real, None, (columns, p), few)
    if rows.tree.shape[1] == 1:
        return jnp.concatenate([each.sum(0), jnp.zeros_like(each, shape=(n - 1, *each.shape[2:]))])
    real, own = jnp.repeat(real, 2, 0), rows.tree.reshape(-1, *rows.tree.shape[2:])
    return segment_sum(each.reshape(-1, *each.shape[2:]), own, n, real if len(own) > 2 * few else None)


def _times_impulses(_: None, rows: tuple[Vec3, Vec3]) -> Array:
    columns, p = rows
    x, y, z = (impulse[:, None, None] for impulse in p.xyz)
    return columns.x * x + columns.y * y + columns.z * z


def _columns(model: Model, motions: tuple[Motion, Vec3], trees: Trees, contacts: Contacts) -> tuple[Vec3, Vec3]:
    """Return A's and B's point velocity for unit velocity of each degree of freedom, (C, w, *batch), contact frame."""
    s, origin = motions
    free = set(model.topology.joints) == {"floating"} and trees.w == 6  # loops may tie bodies to one tree

    def column(link: Array) -> Vec3:
        tree = jnp.minimum(jnp.asarray(trees.of_link)[link], trees.n - 1)
        if free:  # rotation and translation about the world's axes: only the origin is looked up
            o = jax.tree.map(lambda x: gather(x[:, 0], tree, 0), origin)
            velocity = compute_once(_free_body_columns(contacts.frame, compute_once(contacts.point - o)))
        else:
            frame, point = jax.tree.map(lambda x: x[:, None], (contacts.frame, contacts.point))
            own, o = jax.tree.map(lambda x: gather(x, tree, 1), (s, origin))
            velocity = frame @ own.at(point - o).v
        moves = jnp.moveaxis(jnp.asarray(trees.moves)[link], -1, 1)
        return jax.tree.map(lambda x: jnp.where(moves, x, 0), velocity)

    return column(contacts.link_a), column(contacts.link_b)


def _free_body_columns(frame: Mat3, r: Vec3) -> Vec3:
    """Return the columns of a floating joint's (w, v) for a point at r from its origin: v + w x r in the frame."""
    return Vec3(*(jnp.stack([*r.cross(row).xyz, *row.xyz], 1) for row in frame.rows))


def _with_limits(trees: Trees, contacts: Contacts, J: Vec3) -> Vec3:
    """Return J with the rows of joint limits: the joint's velocity along n, 0 along t1 and t2."""
    limit = contacts.is_limit[:, None, None]
    lanes = (1,) * (contacts.gap.ndim - 1)
    column = jnp.asarray(trees.block % trees.w)[contacts.dof][:, None, None]
    first = jnp.arange(J.x.shape[1]).reshape(1, -1, 1, *lanes) == 0
    own = first & (jnp.arange(trees.w).reshape(1, 1, -1, *lanes) == column)
    back = jnp.where(own, contacts.frame.zz[:, None, None], 0)
    return Vec3(jnp.where(limit, 0, J.x), jnp.where(limit, 0, J.y), jnp.where(limit, back, J.z))


def _collision_matrix(J: Vec3, Y: Vec3, limit: Array) -> Sym3:
    xx, yy, zz, xy, xz, yz = (
        (a * b).sum((1, 2))
        for a, b in ((J.x, Y.x), (J.y, Y.y), (J.z, Y.z), (J.x, Y.y), (J.x, Y.z), (J.y, Y.z))
    )  # fmt: skip
    return Sym3(jnp.where(limit, 1, xx), jnp.where(limit, 1, yy), zz, xy, xz, yz)
