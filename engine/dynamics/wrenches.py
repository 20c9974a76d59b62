"""What wrenches on links do to joints: the forces along the degrees of freedom that they amount to, and how a tree
answers if they are impulses.

tau = sum over links of J^T (moment, force), by the inward pass of the recursive Newton-Euler algorithm: each link hands
its wrench to its parent, and a joint feels what passes through it along its own motions.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
from jax import Array

from ..algebra.fence import fence
from ..algebra.spatial import Force
from ..algebra.vec3 import Vec3
from ..algebra.zero import ZERO
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from .aba import factorize
from .bodies import hand_inwards, inertias
from .impulse import respond
from .kinematics import place


@functools.cache
def _along(joint: str):
    row = JOINTS[joint]

    @fence
    def along(F, S):
        return tuple(s.dot(F) for s in row.subspace(S))

    return along


@jax.jit
def joint_forces(model: Model, q: Array, wrenches: Array) -> Array:
    """Forces along the degrees of freedom (..., nv) [N m, N] of wrenches on all links.

    q: (..., nq).  wrenches: (..., nl, 6) moment about the link's origin [N m] and force [N], world axes.
    """
    forest = _forest(model, q, wrenches)
    placed = place(forest, model, q)
    F: list[Any] = _on_links(forest, wrenches)
    tau: list[Any] = [()] * len(F)
    for g in reversed(range(len(F))):
        tau[g] = _along(forest.groups[g].joint)(F[g], placed[g].S)
        hand_inwards(forest, g, F[g], placed[g].r, F)
    return forest.join_dofs(tau)


@jax.jit
def velocity_changes(model: Model, q: Array, wrenches: Array) -> Array:
    """Change of the joint velocities (..., nv) when all links are struck at once: M^-1 times their joint impulses.

    q: (..., nq).  wrenches: (..., nl, 6) moment about the link's origin [N m s] and impulse [N s], world axes.
    """
    forest = _forest(model, q, wrenches)
    placed = place(forest, model, q)
    factors = factorize(forest, model, placed, inertias(forest, model, placed))
    joints = [(ZERO,) * len(forest.per_dof(model.armature, group)) for group in forest.groups]
    return forest.join_dofs(respond(forest, placed, factors, _on_links(forest, wrenches), joints))


def _forest(model: Model, q: Array, wrenches: Array) -> Forest:
    nl = model.topology.n_links
    if wrenches.shape[-2:] != (nl, 6):
        raise ValueError(f"wrenches has shape {wrenches.shape}; this model needs (..., {nl}, 6)")
    return Forest.of(model, q=q, point=wrenches[..., 0, :3])


def _on_links(forest: Forest, wrenches: Array) -> list[Force]:
    rows = [forest.rows(wrenches, 2, group.links) for group in forest.groups]
    return [Force(Vec3.of(x[..., :3]), Vec3.of(x[..., 3:])) for x in rows]
