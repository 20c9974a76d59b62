"""Derivatives of forward dynamics: M dqdd = dtau - (change of inverse dynamics at given accelerations).

Kim (2012), table 6, differentiates the articulated inertias; with M^-1 at hand none of that is needed (Carpentier &
Mansard 2018).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
from jax import Array

from ...forest import Forest
from ...model import Model
from ...shaped import Float
from ..aba import factorize, solve
from ..bodies import bias_forces, gravity, inertias
from ..impulse import NONE, respond
from ..kinematics import propagate_poses, propagate_velocities
from .columns import columns
from .pairs import full_matrix, jacobians, product, unit_responses
from .tiles import in_tiles


class ForwardDerivatives(NamedTuple):
    """Derivatives of the accelerations by displacements q, velocities v and forces tau (M^-1)."""

    q: Float[Array, "*batch nv nv"]
    v: Float[Array, "*batch nv nv"]
    tau: Float[Array, "*batch nv nv"]


@jax.jit
def aba_derivatives(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"], tau: Float[Array, "*#batch nv"]
) -> ForwardDerivatives:
    """Derivatives of `aba(model, q, v, tau)`: [j, k] is that of acceleration j by the k-th q, v or tau.

    Those by q are along the joints' own displacements, as `integrate_q` moves them.
    """
    return in_tiles(_derivatives, model, q, v, tau)


def _derivatives(model: Model, q: Array, v: Array, tau: Array) -> ForwardDerivatives:
    forest = Forest.of(model, q=q, v=v, tau=tau)
    poses = propagate_poses(forest, model, q)
    bodies = inertias(forest, model, poses)
    qd, force = ([forest.per_dof(x, group) for group in forest.groups] for x in (v, tau))
    velocities = propagate_velocities(forest, poses, v)
    factors = factorize(forest, model, poses, bodies)
    qdd = solve(
        forest, poses, factors, bias_forces(bodies, velocities), force, [x.c for x in velocities], gravity(model)
    )
    by = jacobians(forest, model, columns(forest, model, poses, bodies, qd, qdd))

    def response(unit: Array) -> Array:
        impulses = [forest.per_dof(unit, group) for group in forest.groups]
        return forest.join_dofs(respond(forest, poses, factors, [NONE] * len(poses), impulses))

    Minv = unit_responses(forest, response)
    return ForwardDerivatives(*(full_matrix(forest, x) for x in (-product(Minv, by.q), -product(Minv, by.v), Minv)))
