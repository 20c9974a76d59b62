"""Jacobians of columns: the products of all pairs of degrees of freedom of a tree, as blocks.

A block array is (n, w, w, *batch): n trees, made as wide as the widest (see `trees.py`), rows then columns of the
Jacobian. Pairs that are not on one path are masked by the topology.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...algebra.fence import fence
from ...algebra.spatial import Force, Motion
from ...algebra.vec3 import Scalar, Vec3
from ...algebra.zero import dense
from ...forest import Forest
from ...model import Model
from ...topology import Topology
from ..crba import on_path
from ..trees import to_blocks, trees_of
from .columns import Columns, before

D = TypeVar("D")
T = TypeVar("T")
V = TypeVar("V", Motion, Force, Vec3)


class DerivativeBlocks(NamedTuple):
    """dtau/dq, dtau/dv and M = dtau/da, block arrays (n, w, w, *batch)."""

    q: Array
    v: Array
    M: Array


class Masks(NamedTuple):
    """Masks (n, w, w) of rows and columns: the row's degree of freedom carries the column's, or the other way round.

    below: the column's displacement takes the row's motion along, or is the row's own.
    above: the row comes before, and the column's displacement leaves its motion in place.
    """

    below: np.ndarray
    above: np.ndarray


@functools.lru_cache(maxsize=256)
def masks(topology: Topology) -> Masks:
    """Masks of the pairs of degrees of freedom that are on one path."""
    trees, start = trees_of(topology), topology.v_start
    left = on_path(topology).T & ~on_path(topology)  # the column is beyond the row
    for i, joint in enumerate(topology.joints):
        for k, others in enumerate(before(joint)):
            left[[start[i] + o for o in others], start[i] + k] = True
    below = on_path(topology) & ~left

    def blocks(mask: np.ndarray) -> np.ndarray:
        padded = np.pad(mask, (0, 1))
        return padded[trees.dofs[:, :, None], trees.dofs[:, None, :]]

    return Masks(blocks(below), blocks(left))


def rows(forest: Forest, components: Sequence[Sequence[Scalar]]) -> Array:
    """Components per degree of freedom, one sequence per group, as rows of blocks (n, w, *batch)."""
    trees, topology = trees_of(forest.topology), forest.topology
    row: list[Any] = [None] * topology.nv
    for group, values in zip(forest.groups, components, strict=True):
        for k, x in enumerate(values):
            full = dense(x, (group.n, *forest.batch) if group.n > 1 else forest.batch, forest.dtype)
            for at, i in enumerate(group.links):
                row[topology.v_start[i] + k] = full[at : at + 1] if group.n > 1 else full[None]
    row.append(jnp.zeros((1, *forest.batch), forest.dtype))
    flat = jnp.concatenate([row[d] for d in trees.dofs.ravel()])
    return flat.reshape(*trees.dofs.shape, *forest.batch)


@fence
def _by_displacement(below, above, s, s1, s2, I, B, q):
    # first axes: tree, row j, column k
    s1, s2 = (jax.tree.map(lambda x: x[:, None], x) for x in (s1, s2))
    s, I, B = (jax.tree.map(lambda x: x[:, :, None], x) for x in (s, I, B))
    q = jax.tree.map(lambda x: x[:, None], q)
    return jnp.where(below, s2.dot(I) + s1.dot(B), jnp.where(above, s.dot(q), 0))


@fence
def _by_velocity(below, above, s, y, I, B, v):
    sk, y, v = (jax.tree.map(lambda x: x[:, None], x) for x in (s, y, v))
    s, I, B = (jax.tree.map(lambda x: x[:, :, None], x) for x in (s, I, B))
    return jnp.where(below, y.dot(I) + sk.w.dot(B), jnp.where(above, s.dot(v), 0))


@fence
def _inertia(below, above, s, I):
    down = jax.tree.map(lambda x: x[:, None], s).dot(jax.tree.map(lambda x: x[:, :, None], I))
    up = jax.tree.map(lambda x: x[:, :, None], s).dot(jax.tree.map(lambda x: x[:, None], I))
    return jnp.where(below, down, jnp.where(above, up, 0))


def jacobians(forest: Forest, model: Model, dof_columns: Columns) -> DerivativeBlocks:
    """Derivatives of the joint forces at given accelerations."""
    trees = trees_of(forest.topology)

    def concatenate_rows(per_group: Sequence[Sequence[D]], pick: Callable[[D], V]) -> V:
        """A pytree of block rows from one pytree per degree of freedom."""
        some = next(x for own in per_group for x in own)
        names = pick(some)
        flat = [[leaves(pick(x)) for x in own] for own in per_group]
        made = [rows(forest, [[x[k] for x in own] for own in flat]) for k in range(len(leaves(names)))]
        return rebuild(names, made)

    s = concatenate_rows(dof_columns.columns, lambda c: c.s)
    s1 = concatenate_rows(dof_columns.columns, lambda c: c.s1.w)
    s2 = concatenate_rows(dof_columns.columns, lambda c: c.s2)
    y = concatenate_rows(dof_columns.columns, lambda c: c.y)
    I = concatenate_rows(dof_columns.responses, lambda x: x.I)
    B = concatenate_rows(dof_columns.responses, lambda x: x.B)
    q = concatenate_rows(dof_columns.responses, lambda x: x.q)
    v = concatenate_rows(dof_columns.responses, lambda x: x.v)
    below, above = (x.reshape(*x.shape, *(1,) * forest.rank) for x in masks(forest.topology))
    armature = rows(forest, [forest.per_dof(model.armature, group) for group in forest.groups])
    diagonal = np.eye(trees.w, dtype=forest.dtype).reshape(1, trees.w, trees.w, *(1,) * forest.rank)
    M = _inertia(below, above, s, I) + diagonal * armature[:, None]
    return DerivativeBlocks(
        _by_displacement(below, above, s, s1, s2, I, B, q), _by_velocity(below, above, s, y, I, B, v), M
    )


def full_matrix(forest: Forest, blocks: Array) -> Array:
    """Array (*batch, nv, nv) of blocks (n, w, w, *batch); zeros between trees."""
    trees, nv = trees_of(forest.topology), forest.topology.nv
    n, w = trees.n, trees.w
    if n == 1:
        return jnp.moveaxis(blocks[0], (0, 1), (-2, -1))
    at = np.full((nv + 1, nv + 1), n * w * w)
    at[trees.dofs[:, :, None], trees.dofs[:, None, :]] = np.arange(n * w * w).reshape(n, w, w)
    flat = jnp.concatenate([blocks.reshape(n * w * w, *forest.batch), jnp.zeros((1, *forest.batch), forest.dtype)])
    return jnp.moveaxis(flat[at[:nv, :nv]], (0, 1), (-2, -1))


def unit_responses(forest: Forest, response: Callable[[Array], T]) -> T:
    """Blocks of responses (..., nv) that are linear in (nv,), each tree on its own: one column per unit.

    All trees are computed at once, for the k-th degree of freedom of each.
    """
    trees = trees_of(forest.topology)
    units = np.zeros((trees.w, forest.topology.nv + 1))
    for k in range(trees.w):
        units[k, trees.dofs[:, k]] = 1

    def column(unit: Array) -> T:
        return jax.tree.map(lambda x: to_blocks(trees, x)[:-1], response(unit))

    return jax.vmap(column, out_axes=2)(jnp.asarray(units[:, :-1], forest.dtype))


def product(A: Array, B: Array) -> Array:
    """Product A B of block arrays: elementwise over lanes, or, for wide blocks, a matrix product per lane."""
    if A.shape[1] <= NARROW:
        return _narrow_product(A, B)
    lanes = [jnp.moveaxis(x, (0, 1, 2), (-3, -2, -1)) for x in (A, B)]
    return jnp.moveaxis(jnp.matmul(*lanes, precision="highest"), (-3, -2, -1), (0, 1, 2))


NARROW = 12  # degrees of freedom; for wider blocks a library's matrix product is faster


@fence
def _narrow_product(A, B):
    total: Any = sum(A[:, :, j, None] * B[:, j, None] for j in range(A.shape[1]))
    return total


def leaves(x: Motion | Force | Vec3) -> tuple[Scalar, ...]:
    """The leaves of a pytree of vectors, ZERO included."""
    if isinstance(x, Motion):
        return (*x.w.xyz, *x.v.xyz)
    return (*x.n.xyz, *x.f.xyz) if isinstance(x, Force) else x.xyz


def rebuild(like: Motion | Force | Vec3, x: Sequence[Scalar]) -> Any:
    """Rebuild the pytree from its leaves."""
    return Vec3(*x) if isinstance(like, Vec3) else type(like)(Vec3(*x[:3]), Vec3(*x[3:]))
