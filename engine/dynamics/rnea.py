"""Recursive Newton-Euler algorithm: the joint forces that give the accelerations.

Kim (2012), table 2, in world axes at the links' own origins (see kinematics.py). F is the wrench handed
from the parent to the link through the joint.
"""

from __future__ import annotations

import functools

import jax
from jax import Array
from jax.custom_derivatives import SymbolicZero

from ..algebra.fence import fence
from ..algebra.spatial import Force, Motion
from ..algebra.vec3 import Scalar
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from ..native.surface import lanewise
from ..shaped import Float
from .bodies import bias_forces, gravity, hand_inwards, inertias
from .kinematics import propagate_poses, propagate_velocities


@functools.cache
def outward(joint: str):
    row = JOINTS[joint]

    @fence
    def accelerate(a_parent, r, S, c, qdd):
        a = a_parent.at(r) + c
        for s, rate in zip(row.subspace(S), qdd, strict=True):
            a = a + s * rate
        return a.instantiate_zeros()

    return accelerate


@fence
def wrench(body, a, bias):
    return body @ a + bias


@functools.cache
def _inward(joint: str):
    row = JOINTS[joint]

    @fence
    def project(F, S, armature, qdd):
        columns = zip(row.subspace(S), armature, qdd, strict=True)
        return tuple(s.dot(F) + inertia * rate for s, inertia, rate in columns)

    return project


@lanewise
def rnea(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"], a: Float[Array, "*#batch nv"]
) -> Float[Array, "*#batch nv"]:
    """Joint forces tau that give the accelerations a: tau = M a + b.

    Springs, damping, friction and motors are not taken into account (see `passive_forces`); armature is.
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
    F: list[Force] = [wrench(*x) for x in zip(bodies, accelerations, bias_forces(bodies, velocities), strict=True)]
    tau: list[tuple[Scalar, ...]] = [()] * len(F)
    for g in reversed(range(len(F))):
        group = forest.groups[g]
        qdd, armature = forest.per_dof(a, group), forest.per_dof(model.armature, group)
        tau[g] = _inward(group.joint)(F[g], poses[g].S, armature, qdd)
        hand_inwards(forest, g, F[g], poses[g].r, F)
    return forest.join_dofs(tau)


def rnea_change(model: Model, q: Array, v: Array, a: Array, tangents: tuple) -> Array | None:
    """Change of `rnea` (..., nv) along tangents of (model, q, v) at fixed a; None if all of them are zero.

    tangents: those of a rule of `jax.custom_jvp` with symbolic zeros; symbolic zeros cost nothing.
    """
    leaves, tree = jax.tree.flatten((model, q, v))
    changes = tree.flatten_up_to(tangents)
    changed = [i for i, change in enumerate(changes) if not isinstance(change, SymbolicZero)]
    if not changed:
        return None

    def force(*some: Array) -> Array:
        now = dict(zip(changed, some, strict=True))
        return rnea(*tree.unflatten([now.get(i, leaf) for i, leaf in enumerate(leaves)]), a)

    return jax.jvp(force, [leaves[i] for i in changed], [changes[i] for i in changed])[1]
