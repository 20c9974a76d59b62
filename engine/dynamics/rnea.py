"""Recursive Newton-Euler algorithm: the joint forces behind given accelerations.

Kim (2012), table 2, in world axes at the links' own origins (see kinematics.py). F is the wrench handed
from the parent to the link through the joint.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
from jax import Array

from ..algebra.fence import fence
from ..algebra.spatial import Motion
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from .bodies import bias_forces, gravity, hand_inwards, inertias
from .kinematics import move, place


@functools.cache
def _outward(joint: str):
    row = JOINTS[joint]

    @fence
    def accelerate(a_parent, r, S, c, qdd):
        a = a_parent.at(r) + c
        for s, rate in zip(row.subspace(S), qdd, strict=True):
            a = a + s * rate
        return a.filled()

    return accelerate


@fence
def _wrench(body, a, bias):
    return body @ a + bias


@functools.cache
def _inward(joint: str):
    row = JOINTS[joint]

    @fence
    def project(F, S, armature, qdd):
        columns = zip(row.subspace(S), armature, qdd, strict=True)
        return tuple(s.dot(F) + inertia * rate for s, inertia, rate in columns)

    return project


@jax.jit
def rnea(model: Model, q: Array, v: Array, a: Array) -> Array:
    """Joint forces tau (..., nv) that give the accelerations a (..., nv): tau = M a + b.

    q: (..., nq), v: (..., nv). Springs, damping, friction and motors are not subtracted
    (see `passive_forces`); armature is.
    """
    forest = Forest.of(model, q=q, v=v, a=a)
    placed = place(forest, model, q)
    moving = move(forest, placed, v)
    bodies = inertias(forest, model, placed)
    accelerations: list[Motion] = []
    for g, group in enumerate(forest.groups):
        a_parent = forest.from_parents(g, accelerations, gravity(model))
        qdd = forest.per_dof(a, group)
        accelerations.append(_outward(group.joint)(a_parent, placed[g].r, placed[g].S, moving[g].c, qdd))
    F: list[Any] = [_wrench(*x) for x in zip(bodies, accelerations, bias_forces(bodies, moving), strict=True)]
    tau: list[Any] = [()] * len(F)
    for g in reversed(range(len(F))):
        group = forest.groups[g]
        qdd, armature = forest.per_dof(a, group), forest.per_dof(model.armature, group)
        tau[g] = _inward(group.joint)(F[g], placed[g].S, armature, qdd)
        hand_inwards(forest, g, F[g], placed[g].r, F)
    return forest.join_dofs(tau)
