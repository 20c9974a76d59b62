"""Energy and momenta of the whole scene."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ..algebra.fence import fence
from ..algebra.vec3 import Vec3
from ..forest import Forest
from ..model import Model
from ..native.surface import lanewise
from ..shaped import Float, Real
from ..state import State
from .bodies import inertias
from .kinematics import propagate_poses, propagate_velocities
from .passive import displacement
from .trees import to_blocks, trees_of


class Energy(NamedTuple):
    """kinetic: of links and rotors [J].  potential: of weights and joint springs [J]."""

    kinetic: Float[Array, "*batch"]
    potential: Float[Array, "*batch"]

    @property
    def total(self) -> Array:
        return self.kinetic + self.potential


class Momentum(NamedTuple):
    """linear [kg m/s]; angular about the given point [kg m^2/s]; world axes."""

    linear: Float[Array, "*batch 3"]
    angular: Float[Array, "*batch 3"]


@fence
def _kinetic(body, V):
    return V.dot(body @ V) * 0.5


@fence
def _weight(body, p, g):
    return -(p * body.m + body.h).dot(g)


@fence
def _momentum(body, V, p):
    L = (body @ V).from_point(p)
    return L.f.x, L.f.y, L.f.z, L.n.x, L.n.y, L.n.z


def energy(model: Model, state: State) -> Energy:
    """Kinetic and potential energy. Weights have zero potential at the world's origin."""
    return _energy(model, state.q, state.v)


@lanewise
def _energy(model: Model, q: Array, v: Array) -> Energy:
    forest = Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    bodies = inertias(forest, model, poses)
    kinetic = [_kinetic(body, x.V) for body, x in zip(bodies, propagate_velocities(forest, poses, v), strict=True)]
    g = Vec3.of(model.gravity)
    weights = [_weight(body, x.pose.p, g) for body, x in zip(bodies, poses, strict=True)]
    stretch = displacement(model, q) - model.rest
    springs = jnp.where(model.stiffness == 0, 0.0, model.stiffness * stretch**2).sum(-1) / 2
    rotors = (model.armature * v**2).sum(-1) / 2
    return Energy(
        forest.join_links(kinetic).sum(-1) + rotors,
        forest.join_links(weights).sum(-1) + springs,
    )


def kinetic_of_trees(model: Model, q: Array, v: Array) -> Array:
    """Kinetic energy of each tree, of links and rotors, (T + 1, *batch) [J]; the world has none."""
    trees, forest = trees_of(model.topology), Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    velocities = zip(inertias(forest, model, poses), propagate_velocities(forest, poses, v), strict=True)
    links = forest.by_link([_kinetic(body, x.V) for body, x in velocities])
    rotors = (to_blocks(trees, model.armature * v**2) * 0.5).sum(1)
    of = [np.flatnonzero(trees.of_link[:-1] == tree) for tree in range(trees.n)]
    if all(len(x) == 1 for x in of):
        return rotors + jnp.concatenate([links[np.concatenate(of)], jnp.zeros_like(rotors[:1])])
    return rotors + jnp.stack([*(links[x].sum(0) for x in of), jnp.zeros_like(rotors[0])])


def momentum(
    model: Model, state: State, about: Real[ArrayLike, "*#batch 3"] | Sequence[float] = (0.0, 0.0, 0.0)
) -> Momentum:
    """Linear momentum, and angular momentum about a point of the world, of all links together.

    Rotors (armature) contribute no momentum here: the direction of their axes is not modelled.
    """
    return _momenta(model, state.q, state.v, jnp.asarray(about, state.q.dtype))


@lanewise
def _momenta(model: Model, q: Array, v: Array, about: Array) -> Momentum:
    forest = Forest.of(model, q=q, v=v, about=about)
    poses = propagate_poses(forest, model, q)
    velocities = propagate_velocities(forest, poses, v)
    center = Vec3.of(about)
    parts = [
        _momentum(body, x.V, at.pose.p - center)
        for body, x, at in zip(inertias(forest, model, poses), velocities, poses, strict=True)
    ]
    total = [forest.join_links([x[k] for x in parts]).sum(-1) for k in range(6)]
    return Momentum(jnp.stack(total[:3], -1), jnp.stack(total[3:], -1))
