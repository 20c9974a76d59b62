"""M^-1 of one tree from the articulated-body factors, entry by entry along the paths to its root.

    M = L^T D L,   L_kc = S_c . U_k / D_k,   M^-1 = V^T D^-1 V   with V = L^-T:   V_c = e_c - sum_k L_kc V_k

U_k and D_k are the pivots of the articulated-body algorithm, which eliminates from the tips inwards as Featherstone's
L^T D L (2005) does: so L is read off its factors. L_kc is 0 unless degree of freedom c is on the path of k to the root:
no other product is computed. U_k is taken at the point of c.
"""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algebra.fence import fence
from ..algebra.vec3 import Scalar, Vec3
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from .aba import factorize
from .bodies import inertias
from .crba import on_path
from .kinematics import LinkPoses

WIDEST = 32  # degrees of freedom: the program has three operations for each pair of them on one path


def inverse_inertia(forest: Forest, model: Model, poses: list[LinkPoses]) -> Array:
    """M^-1 (nv, nv, *batch) of a forest of one tree."""
    factors = factorize(forest, model, poses, inertias(forest, model, poses), by_columns=True)
    columns: list[list[tuple[Scalar, ...]]] = []
    for group, (pose, _, S), (_, pivots) in zip(forest.groups, poses, factors, strict=True):
        columns.append(
            [(*x, *pose.p.xyz, p.Dinv) for x, p in zip(_columns(group.joint)(S, pivots), pivots, strict=True)]
        )
    rows = [jnp.moveaxis(forest.join_dofs([[x[k] for x in group] for group in columns]), -1, 0) for k in range(16)]
    w, v, n, f, p = (Vec3(*rows[k : k + 3]) for k in range(0, 15, 3))
    Dinv, nv = rows[15], forest.topology.nv
    path = np.tril(on_path(forest.topology), -1)
    k, c = np.nonzero(path)
    pick = lambda x, which: Vec3(*(y[which] for y in x.xyz))  # noqa: E731
    entries = _entries(pick(w, c), pick(v, c), pick(n, k), pick(f, k), pick(p, k) - pick(p, c))
    L = dict(zip(zip(k.tolist(), c.tolist(), strict=True), entries, strict=True))
    lanes = (1,) * len(forest.batch)
    unit = jnp.broadcast_to(jnp.eye(nv, dtype=forest.dtype).reshape(nv, nv, *lanes), (nv, nv, *forest.batch))
    V: list[Any] = [None] * nv
    for c in reversed(range(nv)):
        V[c] = unit[c]
        for k in np.flatnonzero(path[:, c]).tolist():
            V[c] = V[c] - L[k, c] * V[k]
    DV = [Dinv[k] * V[k] for k in range(nv)]
    return jnp.stack([sum((V[k][i] * DV[k] for k in np.flatnonzero(path[i]).tolist()), DV[i]) for i in range(nv)])


@functools.cache
def _columns(joint: str):
    row = JOINTS[joint]

    @fence
    def columns(S, pivots):
        """S and U / D of each column, 12 numbers."""
        made = []
        for s, pivot in zip(row.subspace(S), pivots, strict=True):
            s = s.instantiate_zeros()
            made.append((*s.w.xyz, *s.v.xyz, *(pivot.U.n * pivot.Dinv).xyz, *(pivot.U.f * pivot.Dinv).xyz))
        return made

    return columns


@fence
def _entries(w: Vec3, v: Vec3, n: Vec3, f: Vec3, arm: Vec3):
    return w.dot(n + arm.cross(f)) + v.dot(f)
