"""Hybrid dynamics: some degrees of freedom have a given acceleration, the others a given force.

Kim (2012), table 4, column by column: a prescribed column keeps its inertia (it is not eliminated) and
hands U qdd inwards instead of U u/D; outwards its force is computed instead of its acceleration.
With all prescribed it is inverse dynamics, with none prescribed forward dynamics.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ..algebra.fence import fence
from ..algebra.spatial import Force, Motion
from ..algebra.zero import ZERO
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from ..native.surface import lanewise
from ..shaped import Bool, Float
from .aba import Columns, Factor, factorize
from .bodies import bias_forces, gravity, hand_inwards, inertias
from .kinematics import AT_REST, LinkPoses, propagate_poses, propagate_velocities


class Hybrid(NamedTuple):
    """acceleration and force of every degree of freedom, both given and computed."""

    acceleration: Float[Array, "*batch nv"]
    force: Float[Array, "*batch nv"]


@functools.cache
def _gather(joint: str):
    row = JOINTS[joint]

    @fence
    def gather(IA, pivots, S, p, c, given, values):
        S, u = row.subspace(S), [jnp.zeros(())] * row.nv
        p = p + IA @ c
        for k in reversed(range(row.nv)):
            u[k] = jnp.where(given[k], 0.0, values[k]) - S[k].dot(p)
            p = p + pivots[k].U * jnp.where(given[k], values[k], u[k] * pivots[k].Dinv)
        return tuple(u), p

    return gather


@functools.cache
def _accelerate(joint: str):
    row = JOINTS[joint]

    @fence
    def accelerate(pivots, S, u, a_parent, r, c, armature, given, values):
        S, a, qdd, tau = row.subspace(S), a_parent.at(r), [], []
        for k in range(row.nv):
            lag = u[k] - a.dot(pivots[k].U)
            qdd.append(jnp.where(given[k], values[k], lag * pivots[k].Dinv))
            D = S[k].dot(pivots[k].U) + armature[k]
            tau.append(jnp.where(given[k], D * qdd[k] - lag, values[k]))
            a = a + S[k] * qdd[k]
        return tuple(qdd), tuple(tau), (a + c).instantiate_zeros()

    return accelerate


@lanewise
def hybrid(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    given: Bool[Array, "*#batch nv"],
    values: Float[Array, "*#batch nv"],
) -> Hybrid:
    """Solve M a + b = tau where `values` holds a_i if given_i, else tau_i; return all a and tau.

    values: [rad/s^2, m/s^2 or N m, N].
    """
    given, values = (jnp.asarray(x, q.dtype) for x in (given, values))
    return solve_hybrid(hybrid_factors(model, q, v, given, values), values)


class Factors(NamedTuple):
    """Factors of one system with prescribed accelerations, to solve it for any values; per group except the first."""

    forest: Forest
    poses: list[LinkPoses]
    factors: list[Factor]
    biases: list[Force]
    c: list[Motion]
    a_world: Motion
    armature: list[Columns]
    given: list[Columns]

    def at_rest(self) -> Factors:
        """The same system without velocities and gravity: it is linear in the values."""
        n = len(self.poses)
        return self._replace(biases=[Force(ZERO, ZERO)] * n, c=[AT_REST] * n, a_world=AT_REST)


def hybrid_factors(model: Model, q: Array, v: Array, given: Array, values: Array) -> Factors:
    """Factorize a system.  given: (..., nv), 1 if the acceleration is prescribed, else 0.  values: for its shape."""
    forest = Forest.of(model, q=q, v=v, given=given, values=values)
    poses = propagate_poses(forest, model, q)
    velocities = propagate_velocities(forest, poses, v)
    bodies = inertias(forest, model, poses)
    factors = factorize(forest, model, poses, bodies, given)
    armature, known = ([forest.per_dof(x, group) for group in forest.groups] for x in (model.armature, given))
    biases = bias_forces(bodies, velocities)
    return Factors(forest, poses, factors, biases, [x.c for x in velocities], gravity(model), armature, known)


def solve_hybrid(system: Factors, values: Array) -> Hybrid:
    """Solve for the values (..., nv)."""
    forest, poses, factors, biases, c, a_world, armature, given = system
    p = list(biases)
    u: list[Columns] = [()] * len(p)
    known = [(given[g], forest.per_dof(values, group)) for g, group in enumerate(forest.groups)]
    for g in reversed(range(len(p))):
        group, (_, r, S), (IA, pivots) = forest.groups[g], poses[g], factors[g]
        u[g], handed = _gather(group.joint)(IA, pivots, S, p[g], c[g], *known[g])
        hand_inwards(forest, g, handed, r, p)
    a: list[Motion] = []
    qdd, tau = [], []
    for g, group in enumerate(forest.groups):
        (_, r, S), (_, pivots) = poses[g], factors[g]
        a_parent = forest.from_parents(g, a, a_world)
        stage = _accelerate(group.joint)
        rates, forces, ag = stage(pivots, S, u[g], a_parent, r, c[g], armature[g], *known[g])
        a.append(ag)
        qdd.append(rates)
        tau.append(forces)
    return Hybrid(forest.join_dofs(qdd), forest.join_dofs(tau))
