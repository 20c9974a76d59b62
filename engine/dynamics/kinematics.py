"""Forward kinematics: poses and velocities of the links (Kim 37, 41).

All spatial quantities of this package are written in *world axes at the link's own origin*. Kim writes
them in the link's axes; with world axes every Ad between neighbours is a shift of the origin by
r = p - p_parent, no rotation, and precision does not depend on where in the world the tree stands.

    R, p      orientation and origin of the link in the world
    r         from the parent's origin to the link's origin, world axes
    S         joint subspace, one Motion per degree of freedom
    V         velocity;  c = V x (S qd) + c_J, the velocity-dependent part of the acceleration
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..algebra.fence import fence
from ..algebra.rotation import Quat
from ..algebra.spatial import IDENTITY, Motion, Transform
from ..algebra.vec3 import Mat3, Vec3
from ..algebra.zero import ZERO
from ..forest import Forest
from ..joints import JOINTS, JointParams
from ..model import Model
from ..shaped import Float

WORLD = Transform(IDENTITY, Vec3(ZERO, ZERO, ZERO))
AT_REST = Motion(ZERO, ZERO)


class LinkPoses(NamedTuple):
    """One group's links in the world."""

    pose: Transform
    r: Vec3
    S: tuple[Motion, ...]


class LinkVelocities(NamedTuple):
    """One group's velocities."""

    V: Motion
    c: Motion


@functools.cache
def _pose_stage(joint: str):
    row = JOINTS[joint]

    @fence
    def cos_sin(*angles):
        return tuple((jnp.cos(a), jnp.sin(a)) for a in angles)

    @fence
    def link_pose(parent, numbers, q, cos_sin):
        position, quaternion, axis, axis2, pitch = numbers
        R0 = parent.R @ Quat.of_array(quaternion).matrix()
        R, d, S = row.move(R0, JointParams(Vec3.of(axis), Vec3.of(axis2), pitch), q, cos_sin)
        r = parent.R @ Vec3.of(position) + d
        return LinkPoses(Transform(R, parent.p + r), r, S)

    return cos_sin, link_pose


@functools.cache
def _velocity_stage(joint: str):
    row = JOINTS[joint]

    @fence
    def move(V_parent, r, S, qd):
        S = row.subspace(S)
        VJ = sum((s * rate for s, rate in zip(S, qd, strict=True)), start=AT_REST)
        V = (V_parent.at(r) + VJ).instantiate_zeros()
        return LinkVelocities(V, V.ad(VJ) + row.bias(S, qd) if qd else AT_REST)

    return move


def propagate_poses(forest: Forest, model: Model, q: Array) -> list[LinkPoses]:
    """Poses and joint subspaces, from the roots outwards; one entry per group."""
    poses: list[LinkPoses] = []
    for g, group in enumerate(forest.groups):
        cos_sin, stage = _pose_stage(group.joint)
        parent = forest.from_parents(g, [x.pose for x in poses], WORLD)
        numbers = tuple(forest.parameter(model, name, group) for name in _PLACEMENT)
        qg = forest.coordinates(q, group)
        poses.append(stage(parent, numbers, qg, cos_sin(*qg[: JOINTS[group.joint].angles])))
    return poses


_PLACEMENT = ("joint_position", "joint_quaternion", "axis", "axis2", "pitch")


def propagate_velocities(forest: Forest, poses: list[LinkPoses], v: Array) -> list[LinkVelocities]:
    """Velocities and their part of the accelerations, from the roots outwards; one entry per group."""
    velocities: list[LinkVelocities] = []
    for g, group in enumerate(forest.groups):
        V_parent = forest.from_parents(g, [x.V for x in velocities], AT_REST)
        stage = _velocity_stage(group.joint)
        velocities.append(stage(V_parent, poses[g].r, poses[g].S, forest.per_dof(v, group)))
    return velocities


def bias_accelerations(forest: Forest, poses: list[LinkPoses], velocities: list[LinkVelocities]) -> list[Motion]:
    """Accelerations of the links without those due to joints and gravity, from the roots outwards."""
    accelerations: list[Motion] = []
    for g, x in enumerate(velocities):
        accelerations.append(_bias_stage(forest.from_parents(g, accelerations, AT_REST), poses[g].r, x.c))
    return accelerations


@fence
def _bias_stage(a_parent: Motion, r: Vec3, c: Motion) -> Motion:
    return (a_parent.at(r) + c).instantiate_zeros()


class Poses(NamedTuple):
    """Poses of all links, in link order.

    position: origin of each link in the world [m].
    rotation: axes of the link, as columns, in the world.
    """

    position: Float[Array, "*batch n 3"]
    rotation: Float[Array, "*batch n 3 3"]


@jax.jit
def fk(model: Model, q: Float[Array, "*#batch nq"]) -> Poses:
    """Poses of all links at the coordinates q."""
    forest = Forest.of(model, q=q)
    poses = propagate_poses(forest, model, q)

    def join(pick) -> Array:
        return forest.join_links([pick(x.pose) for x in poses])

    position = [join(lambda T, k=k: getattr(T.p, k)) for k in "xyz"]
    rotation = [join(lambda T, k=k: getattr(T.R, k)) for k in Mat3.__dataclass_fields__]
    shape = (*forest.batch, forest.topology.n_links, 3, 3)
    return Poses(jnp.stack(position, -1), jnp.stack(rotation, -1).reshape(shape))


@jax.jit
def link_velocities(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*#batch nl 6"]:
    """Angular velocity of each link and velocity of its origin, (..., nl, 6), world axes [rad/s, m/s]."""
    forest = Forest.of(model, q=q, v=v)
    velocities = propagate_velocities(forest, propagate_poses(forest, model, q), v)
    parts = [[getattr(x.V, part) for x in velocities] for part in "wv"]
    return jnp.stack([forest.join_links([getattr(x, k) for x in part]) for part in parts for k in "xyz"], -1)


@jax.jit
def integrate_q(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"], h: Float[Array, "*#batch"] | float
) -> Float[Array, "*#batch nq"]:
    """Coordinates after moving for the time h with constant joint velocities v (exponential map).

    h: seconds, a number or one per lane.
    """
    forest = Forest.of(model, q=q, v=v)
    stepped = []
    for group in forest.groups:
        row = JOINTS[group.joint]
        stepped.append(row.advance(forest.coordinates(q, group), forest.per_dof(v, group), h))
    return forest.join_coordinates(stepped)


@jax.jit
def coordinate_rates(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"]
) -> Float[Array, "*#batch nq"]:
    """Rates dq/dt at the coordinates q and joint velocities v; they differ from v if q has quaternions."""
    forest = Forest.of(model, q=q, v=v)
    rates = [
        JOINTS[group.joint].rate(forest.coordinates(q, group), forest.per_dof(v, group)) for group in forest.groups
    ]
    return forest.join_coordinates(rates)


@jax.jit
def bracket(model: Model, a: Float[Array, "*#batch nv"], b: Float[Array, "*#batch nv"]) -> Float[Array, "*#batch nv"]:
    """The Lie bracket [a, b], joint velocities, of moves along a and b: for any function, its derivative along b
    differentiated along a, minus its derivative along a differentiated along b, is its derivative along [a, b].
    """
    forest = Forest.of(model, a=a, b=b)
    parts = [JOINTS[group.joint].bracket(forest.per_dof(a, group), forest.per_dof(b, group)) for group in forest.groups]
    return forest.join_dofs(parts)


@jax.jit
def normalize_q(model: Model, q: Float[Array, "*#batch nq"]) -> Float[Array, "*#batch nq"]:
    """Return q with unit quaternions."""
    forest = Forest.of(model, q=q)
    parts = [JOINTS[group.joint].normalize(forest.coordinates(q, group)) for group in forest.groups]
    return forest.join_coordinates(parts)
