"""The links as single rigid bodies: inertia in world axes, momentum, bias force (Kim 22, 23, 31)."""

from __future__ import annotations

from typing import TypeVar

from jax import Array

from ..algebra.fence import fence
from ..algebra.spatial import Force, Motion, RigidInertia
from ..algebra.vec3 import Sym3, Vec3
from ..algebra.zero import ZERO
from ..forest import Forest
from ..model import Model
from .kinematics import LinkPoses, LinkVelocities

T = TypeVar("T")


@fence
def _inertia(R, mass, com, inertia):
    return RigidInertia.about_com(mass, R @ Vec3.of(com), Sym3.of(inertia).rotate(R))


@fence
def _shift_and_add(x, r, others):
    return x.from_point(r) + others


def hand_inwards(forest: Forest, g: int, x: T, r: Vec3, sums: list[T]) -> None:
    """Add the force or inertia x of each link of group g, moved to its parent's origin, to the parent's sum."""
    if forest.groups[g].depth == 0:
        return
    h = forest.matching_group(g)
    if h is None:
        forest.to_parents(g, _shift_and_add(x, r, ZERO), sums)
    else:
        sums[h] = _shift_and_add(x, r, sums[h])


@fence
def _bias(inertia: RigidInertia, V: Motion) -> Force:
    return V.ad_dual(inertia @ V) * -1


def inertias(forest: Forest, model: Model, poses: list[LinkPoses]) -> list[RigidInertia]:
    """Inertia of every link in world axes about its own origin; one entry per group."""
    names = ("mass", "com", "inertia")
    return [
        _inertia(x.pose.R, *(forest.parameter(model, name, group) for name in names))
        for group, x in zip(forest.groups, poses, strict=True)
    ]


def bias_forces(bodies: list[RigidInertia], velocities: list[LinkVelocities]) -> list[Force]:
    """-ad*_V I V: the wrench that keeps each link's velocity constant."""
    return [_bias(body, x.V) for body, x in zip(bodies, velocities, strict=True)]


def gravity(model: Model) -> Motion:
    """Acceleration of the world, -g, which replaces the weights of the links."""
    g: Array = model.gravity
    return Motion(Vec3(0.0, 0.0, 0.0), -Vec3.of(g))
