"""Wrenches on links: their forces along the degrees of freedom, the response of a tree if they are impulses, and the
wrenches that pass through the joints of a tree in motion.

tau = sum over links of J^T (moment, force), by the inward pass of the recursive Newton-Euler algorithm: each link hands
its wrench to its parent, and the force along a joint is the wrench that passes through it times the joint's motions.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import Array

from ..algebra.fence import fence
from ..algebra.spatial import Force, Motion
from ..algebra.vec3 import Scalar, Vec3
from ..algebra.zero import ZERO
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from ..native.surface import native_jit
from ..shaped import Float
from .aba import factorize
from .bodies import bias_forces, gravity, hand_inwards, inertias
from .impulse import respond
from .kinematics import LinkPoses, propagate_poses, propagate_velocities
from .rnea import outward, wrench


@functools.cache
def _along(joint: str):
    row = JOINTS[joint]

    @fence
    def along(F, S):
        return tuple(s.dot(F) for s in row.subspace(S))

    return along


@native_jit
def joint_forces(
    model: Model, q: Float[Array, "*#batch nq"], wrenches: Float[Array, "*#batch nl 6"]
) -> Float[Array, "*#batch nv"]:
    """Forces along the degrees of freedom [N m, N] of wrenches on all links.

    wrenches: moment about the link's origin [N m] and force [N], world axes.
    """
    forest = _forest(model, q, wrenches)
    poses = propagate_poses(forest, model, q)
    return along_joints(forest, poses, _on_links(forest, wrenches))


def along_joints(forest: Forest, poses: list[LinkPoses], wrenches: list[Force]) -> Array:
    """Joint forces of wrenches in components, one entry per group."""
    F = list(wrenches)
    tau: list[tuple[Scalar, ...]] = [()] * len(F)
    for g in reversed(range(len(F))):
        tau[g] = _along(forest.groups[g].joint)(F[g], poses[g].S)
        hand_inwards(forest, g, F[g], poses[g].r, F)
    return forest.join_dofs(tau)


@jax.jit
def velocity_changes(
    model: Model, q: Float[Array, "*#batch nq"], wrenches: Float[Array, "*#batch nl 6"]
) -> Float[Array, "*#batch nv"]:
    """Change of the joint velocities when all links are struck at once: M^-1 times their joint impulses.

    wrenches: moment about the link's origin [N m s] and impulse [N s], world axes.
    """
    forest = _forest(model, q, wrenches)
    poses = propagate_poses(forest, model, q)
    factors = factorize(forest, model, poses, inertias(forest, model, poses))
    joints = [(ZERO,) * len(forest.per_dof(model.armature, group)) for group in forest.groups]
    return forest.join_dofs(respond(forest, poses, factors, _on_links(forest, wrenches), joints))


@native_jit
def joint_wrenches(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    a: Float[Array, "*#batch nv"],
    wrenches: Float[Array, "*#batch nl 6"] | None = None,
) -> Float[Array, "*#batch nl 6"]:
    """Wrench that each joint transmits to its link at the accelerations a: motor and bearings together.

    Moment about the link's origin [N m] and force [N], world axes: F_i of Kim (2012), table 2. The wrench of a free
    body moves it in addition to its weight. Rotors (armature) are left out: they rotate with the link, but are mounted
    on its parent.
    wrenches: other wrenches on the links, in the same form; the constraint forces of loops must be among them.
    """
    nl = model.topology.n_links
    wrenches = jnp.zeros((nl, 6), q.dtype) if wrenches is None else wrenches
    forest = _forest(model, q, wrenches, v=v, a=a)
    poses = propagate_poses(forest, model, q)
    velocities, bodies = propagate_velocities(forest, poses, v), inertias(forest, model, poses)
    accelerations: list[Motion] = []
    for g, group in enumerate(forest.groups):
        a_parent = forest.from_parents(g, accelerations, gravity(model))
        accelerations.append(
            outward(group.joint)(a_parent, poses[g].r, poses[g].S, velocities[g].c, forest.per_dof(a, group))
        )
    needed = map(wrench, bodies, accelerations, bias_forces(bodies, velocities))
    F: list[Force] = [x - other for x, other in zip(needed, _on_links(forest, wrenches), strict=True)]
    for g in reversed(range(len(F))):
        hand_inwards(forest, g, F[g], poses[g].r, F)
    return jnp.stack([forest.join_links([pick(x) for x in F]) for pick in _COMPONENTS], -1)


_COMPONENTS = tuple(lambda F, part=part, k=k: getattr(getattr(F, part), k) for part in "nf" for k in "xyz")


def _forest(model: Model, q: Array, wrenches: Array, **others: Array) -> Forest:
    nl = model.topology.n_links
    if wrenches.shape[-2:] != (nl, 6):
        raise ValueError(f"wrenches has shape {wrenches.shape}; this model needs (..., {nl}, 6)")
    return Forest.of(model, q=q, point=wrenches[..., 0, :3], **others)


def _on_links(forest: Forest, wrenches: Array) -> list[Force]:
    rows = [forest.rows(wrenches, 2, group.links) for group in forest.groups]
    return [Force(Vec3.of(x[..., :3]), Vec3.of(x[..., 3:])) for x in rows]
