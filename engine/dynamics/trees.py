"""Trees as blocks: joint velocities and inverse inertias of every tree of a forest, side by side.

The links that hang on one root move together and respond to impulses together. Links of different roots do not, unless
loops couple them: then they count as one tree here (`engine/loops/impulse.py` computes the response).
So M^-1 is block diagonal, one block per tree, and a contact concerns at most two of them. All blocks are made as wide
as the widest tree, w, padded by zeros, so that a tree can be picked by an index known only when the program runs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ..algebra.spatial import Motion
from ..algebra.vec3 import Vec3
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from ..topology import Topology
from .aba import factorize
from .bodies import inertias
from .impulse import NONE, respond
from .inverse_inertia import WIDEST, inverse_inertia
from .kinematics import LinkPoses


@dataclass(frozen=True)
class Trees:
    """The tree of each link and each degree of freedom. n trees of at most w degrees of freedom.

    of_link: (nl + 1,) tree of each link, and of the world: n, as for links welded to the world.
    dofs: (n, w) degrees of freedom of each tree, padded by nv.
    moves: (nl + 1, w) whether the k-th degree of freedom of a link's tree moves the link.
    block: (nv,) index of each degree of freedom in the flattened (n, w).
    """

    of_link: NDArray[np.int32]
    dofs: NDArray[np.int32]
    moves: NDArray[np.bool_]
    block: NDArray[np.int32]

    @property
    def n(self) -> int:
        return len(self.dofs)

    @property
    def w(self) -> int:
        return self.dofs.shape[1]

    @functools.cached_property
    def of_dof(self) -> NDArray[np.int32]:
        """Tree of each degree of freedom, (nv,)."""
        return self.block // self.w if self.n else self.block


@functools.lru_cache(maxsize=256)
def trees_of(topology: Topology) -> Trees:
    """The trees of a topology, in the order of their roots."""
    nl, nv, start = topology.n_links, topology.nv, topology.v_start
    root = roots_of(topology)
    own: dict[int, list[int]] = {}
    for i in range(nl):
        own.setdefault(root[i], []).extend(range(start[i], start[i + 1]))
    roots = [r for r in sorted(own) if own[r]]
    w = max((len(own[r]) for r in roots), default=0)
    dofs = np.full((len(roots), w), nv, np.int32)
    for t, r in enumerate(roots):
        dofs[t, : len(own[r])] = own[r]
    of_link = np.array([roots.index(root[i]) if own[root[i]] else len(roots) for i in range(nl)] + [len(roots)])
    moves = np.zeros((nl + 1, w), bool)
    for i in range(nl):
        above = {d for j in topology.ancestors(i) for d in range(start[j], start[j + 1])}
        if above:
            moves[i] = np.isin(dofs[of_link[i]], list(above))
    block = np.argsort(dofs.ravel(), kind="stable")[:nv]
    return Trees(of_link.astype(np.int32), dofs, moves, block.astype(np.int32))


@functools.lru_cache(maxsize=256)
def roots_of(topology: Topology) -> tuple[int, ...]:
    """The root of each link; if constraint forces of loops couple trees, the root of the first of them."""
    root = [topology.ancestors(i)[-1] for i in range(topology.n_links)]
    for loop in topology.loops if topology.hold != "penalty" else ():
        if min(loop.a, loop.b) >= 0 and loop.kind != "spring":
            one, other = sorted((root[loop.a], root[loop.b]))
            root = [one if r == other else r for r in root]
    return tuple(root)


# -- joint velocities -----------------------------------------------------------------------------


def to_blocks(trees: Trees, v: Array) -> Array:
    """Return blocks (n + 1, w, *batch) of joint velocities (*batch, nv); the last block is the world's, zeros."""
    padded = jnp.concatenate([jnp.moveaxis(v, -1, 0), jnp.zeros((1, *v.shape[:-1]), v.dtype)])
    blocks = padded[trees.dofs] if not _in_order(trees) else padded[:-1].reshape(trees.n, trees.w, *v.shape[:-1])
    return jnp.concatenate([blocks, jnp.zeros((1, *blocks.shape[1:]), v.dtype)])


def from_blocks(trees: Trees, blocks: Array) -> Array:
    """Return joint velocities (*batch, nv) of blocks (n + 1, w, *batch)."""
    rows = blocks[:-1].reshape(trees.n * trees.w, *blocks.shape[2:])
    return jnp.moveaxis(rows if _in_order(trees) else rows[trees.block], 0, -1)


def _in_order(trees: Trees) -> bool:
    """Return whether the flattened blocks are the joint velocities in order, without padding."""
    return np.array_equal(trees.dofs.ravel(), np.arange(len(trees.block)))


# -- motions of points, and responses to impulses ---------------------------------------------------


def dof_motions(forest: Forest, poses: list[LinkPoses]) -> tuple[Motion, Vec3]:
    """The motion each degree of freedom gives its link, at the point where it acts: components (nv, *batch).

    World axes; the points are the origins of the links [m].
    """
    columns = []
    for group, (pose, _, S) in zip(forest.groups, poses, strict=True):
        motions = [s.instantiate_zeros() for s in JOINTS[group.joint].subspace(S)]
        columns.append([(*s.w.xyz, *s.v.xyz, *pose.p.xyz) for s in motions])
    rows = [jnp.moveaxis(forest.join_dofs([[s[k] for s in group] for group in columns]), -1, 0) for k in range(9)]
    return Motion(Vec3(*rows[:3]), Vec3(*rows[3:6])), Vec3(*rows[6:])


def inverse_inertias(forest: Forest, model: Model, poses: list[LinkPoses]) -> Array:
    """M^-1 of every tree, (n, w, w, *batch): its columns are the responses to unit impulses along the joints."""
    trees = trees_of(forest.topology)
    if trees.n == 1 and trees.w <= WIDEST:
        return inverse_inertia(forest, model, poses)[None]
    factors = factorize(forest, model, poses, inertias(forest, model, poses))
    still = [NONE] * len(forest.groups)

    def response(impulse: Array) -> Array:
        joints = [forest.per_dof(impulse, group) for group in forest.groups]
        return to_blocks(trees, forest.join_dofs(respond(forest, poses, factors, still, joints)))[:-1]

    units = np.zeros((trees.w, forest.topology.nv + 1))
    for k in range(trees.w):
        units[k, trees.dofs[:, k]] = 1
    return jax.vmap(response, out_axes=2)(jnp.asarray(units[:, :-1], forest.dtype))
