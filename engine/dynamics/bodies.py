"""The links as single rigid bodies: inertia in world axes, momentum, bias force (Kim 22, 23, 31)."""

from __future__ import annotations

from jax import Array

from ..algebra.fence import fence
from ..algebra.spatial import Force, Motion, RigidInertia
from ..algebra.vec3 import Sym3, Vec3
from ..forest import Forest
from ..model import Model
from .kinematics import Moving, Placed


@fence
def _inertia(R, mass, com, inertia):
    return RigidInertia.about_com(mass, R @ Vec3.of(com), Sym3.of(inertia).rotated(R))


@fence
def _bias(inertia: RigidInertia, V: Motion) -> Force:
    return V.ad_dual(inertia @ V) * -1


def inertias(forest: Forest, model: Model, placed: list[Placed]) -> list[RigidInertia]:
    """Inertia of every link in world axes about its own origin; one entry a group."""
    names = ("mass", "com", "inertia")
    return [
        _inertia(x.pose.R, *(forest.parameter(model, name, group) for name in names))
        for group, x in zip(forest.groups, placed, strict=True)
    ]


def bias_forces(bodies: list[RigidInertia], moving: list[Moving]) -> list[Force]:
    """-ad*_V I V: the wrench that keeps each link's velocity constant."""
    return [_bias(body, x.V) for body, x in zip(bodies, moving, strict=True)]


def gravity(model: Model) -> Motion:
    """The acceleration the world is given in place of weights: -g."""
    g: Array = model.gravity
    return Motion(Vec3(0.0, 0.0, 0.0), -Vec3.of(g))
