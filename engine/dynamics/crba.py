"""Composite-rigid-body algorithm: the joint-space inertia matrix M.

Featherstone (2008), table 6.2: the wrench F_i = Ic_i s_i moves everything that column i carries, and
M_ij = F_i . s_j for the column of each ancestor. Departure: both are first moved to the origin of their tree's
root, where a single product of two (nv, 6) arrays computes all pairs; pairs that are not on one path are
masked by the topology.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algebra.fence import fence
from ..algebra.spatial import RigidInertia
from ..algebra.vec3 import Scalar, Vec3
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from ..native.surface import lanewise
from ..shaped import Float
from ..topology import Topology
from .bodies import hand_inwards, inertias
from .kinematics import LinkPoses, propagate_poses


@functools.cache
def _columns(joint: str):
    row = JOINTS[joint]

    @fence
    def columns(body: RigidInertia, S, offset: Vec3):
        S = row.subspace(S)
        return tuple(s.at(-offset).instantiate_zeros() for s in S), tuple((body @ s).from_point(offset) for s in S)

    return columns


def composites(forest: Forest, poses: list[LinkPoses], bodies: list[RigidInertia]) -> list[RigidInertia]:
    """Inertia of each link together with everything it carries; one entry per group."""
    Ic = list(bodies)
    for g in reversed(range(len(Ic))):
        hand_inwards(forest, g, Ic[g], poses[g].r, Ic)
    return Ic


@lanewise
def crba(model: Model, q: Float[Array, "*#batch nq"]) -> Float[Array, "*#batch nv nv"]:
    """The inertia matrix M, armature included, at the coordinates q."""
    forest = Forest.of(model, q=q)
    poses = propagate_poses(forest, model, q)
    Ic = composites(forest, poses, inertias(forest, model, poses))
    roots: list[Vec3] = []
    twists, wrenches = [], []
    for g, group in enumerate(forest.groups):
        p = poses[g].pose.p
        roots.append(forest.from_parents(g, roots, p))
        s, F = _columns(group.joint)(Ic[g], poses[g].S, p - roots[g])
        twists.append([(x.w.x, x.w.y, x.w.z, x.v.x, x.v.y, x.v.z) for x in s])
        wrenches.append([(x.n.x, x.n.y, x.n.z, x.f.x, x.f.y, x.f.z) for x in F])

    def stack_columns(columns: Sequence[Sequence[Sequence[Scalar]]]) -> Array:
        parts = [forest.join_dofs([[x[k] for x in group] for group in columns]) for k in range(6)]
        return jnp.stack(parts, -1)

    M = jnp.einsum("...ik,...jk->...ij", stack_columns(wrenches), stack_columns(twists), precision="highest")
    lower = jnp.where(np.tril(on_path(model.topology)), M, 0)
    strict = jnp.where(np.tril(on_path(model.topology), -1), M, 0)
    diagonal = model.armature[..., None] * jnp.eye(model.topology.nv, dtype=q.dtype)
    return lower + jnp.swapaxes(strict, -1, -2) + diagonal


def on_path(topology: Topology) -> np.ndarray:
    """Return whether the column's degree of freedom moves the row's link, (nv, nv) bool."""
    owner = np.repeat(np.arange(topology.n_links), np.diff(topology.v_start))
    carries = np.zeros((topology.n_links, topology.n_links), bool)
    for i in range(topology.n_links):
        carries[i, list(topology.ancestors(i))] = True
    return carries[np.ix_(owner, owner)]
