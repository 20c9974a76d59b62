"""Stiffness of joints against rotation under the loads that links carry: how fast a taut chain swings.

A force f that acts on a link at r from its origin does the work f . (R r) while the link turns. Its second derivative
about an axis e is -(f . r - (f . e)(r . e)): a pull outwards holds a link as a spring of f . r would. The forces are
those of the links it carries, -F of `rnea.py` through each of their joints, and its own weight and inertia.
"""

from __future__ import annotations

from jax import Array

from ..algebra.fence import fence
from ..algebra.safe import safe_div
from ..algebra.spatial import Motion, RigidInertia
from ..algebra.vec3 import Scalar, Sym3, Vec3
from ..algebra.zero import ZERO, is_zero
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from .bodies import bias_forces, gravity, inertias
from .kinematics import propagate_poses, propagate_velocities
from .rnea import outward, wrench


def load_stiffness(model: Model, q: Array, v: Array, a: Array) -> Array:
    """Return the stiffness of each degree of freedom by the loads on its own link, (*batch, nv) [N m/rad].

    a: (*batch, nv) accelerations. It is 0 of translations, and negative under loads that press.
    """
    forest = Forest.of(model, q=q, v=v, a=a)
    poses = propagate_poses(forest, model, q)
    velocities = propagate_velocities(forest, poses, v)
    bodies = inertias(forest, model, poses)
    accelerations: list[Motion] = []
    for g, group in enumerate(forest.groups):
        a_parent = forest.from_parents(g, accelerations, gravity(model))
        qdd = forest.per_dof(a, group)
        accelerations.append(outward(group.joint)(a_parent, poses[g].r, poses[g].S, velocities[g].c, qdd))
    biases = bias_forces(bodies, velocities)
    F = [wrench(*x).f for x in zip(bodies, accelerations, biases, strict=True)]
    K = [_of_weight(body, f) for body, f in zip(bodies, F, strict=True)]
    stiffness: list[tuple[Scalar, ...]] = [()] * len(F)
    for g in reversed(range(len(F))):
        columns = JOINTS[forest.groups[g].joint].subspace(poses[g].S)
        stiffness[g] = tuple(ZERO if is_zero(s.w) else _about(s.w, K[g]) for s in columns)
        forest.to_parents(g, _of_pull(poses[g].r, F[g]), K)
        forest.to_parents(g, F[g], F)
    return forest.join_dofs(stiffness)


@fence
def _of_weight(body: RigidInertia, f: Vec3) -> Sym3:
    return _of_pull(body.h * safe_div(1, body.m), f)


@fence
def _of_pull(r: Vec3, F: Vec3) -> Sym3:
    """Return the stiffness of a link that hands on F, the force that its parent exerts on what is at r.

    The link itself feels -F at r, so F points inwards under a pull.
    """
    x, y, z = F.x * r.x, F.y * r.y, F.z * r.z
    half = [(F.x * r.y + F.y * r.x) * 0.5, (F.x * r.z + F.z * r.x) * 0.5, (F.y * r.z + F.z * r.y) * 0.5]
    return Sym3(-y - z, -x - z, -x - y, *half)


@fence
def _about(axis: Vec3, K: Sym3) -> Scalar:
    return axis.dot(K @ axis)
