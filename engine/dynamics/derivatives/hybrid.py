"""Derivatives of hybrid dynamics by coordinates, velocities and given values.

Kim (2012), table 7, but by inverse dynamics. Let c be the change of inverse dynamics at the resulting accelerations.
Then M da = dtau - c is again a hybrid system, linear in the given values, da_u and dtau_v - c_v; with its responses P
and Q to unit values, da = -P c_v and dtau = c - Q c_v.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...model import Model
from ...shaped import Bool, Float
from ..bodies import inertias
from ..hybrid import hybrid_factors, solve_hybrid
from .columns import columns
from .pairs import full_matrix, jacobians, product, rows, unit_responses
from .tiles import in_tiles


class Slopes(NamedTuple):
    """Slopes of all degrees of freedom by displacements q, velocities v and the given values."""

    q: Float[Array, "*batch nv nv"]
    v: Float[Array, "*batch nv nv"]
    values: Float[Array, "*batch nv nv"]


class HybridDerivatives(NamedTuple):
    """Derivatives of both outputs of `hybrid`; a given one depends on its own value only."""

    acceleration: Slopes
    force: Slopes


@jax.jit
def hybrid_derivatives(
    model: Model,
    q: Float[Array, "*#batch nq"],
    v: Float[Array, "*#batch nv"],
    given: Bool[Array, "*#batch nv"],
    values: Float[Array, "*#batch nv"],
) -> HybridDerivatives:
    """Derivatives of `hybrid(model, q, v, given, values)`: [j, k] is that of acceleration or force j by the k-th.

    Those by q are along the joints' own displacements, as `integrate_q` moves them.
    """
    given, values = (jnp.asarray(x, q.dtype) for x in (given, values))
    return in_tiles(_derivatives, model, q, v, given, values)


def _derivatives(model: Model, q: Array, v: Array, given: Array, values: Array) -> HybridDerivatives:
    system = hybrid_factors(model, q, v, given, values)
    forest, poses = system.forest, system.poses
    qd, qdd = ([forest.per_dof(x, g) for g in forest.groups] for x in (v, solve_hybrid(system, values).acceleration))
    by = jacobians(forest, model, columns(forest, model, poses, inertias(forest, model, poses), qd, qdd))
    rest = system.at_rest()
    P, Q = unit_responses(forest, lambda unit: solve_hybrid(rest, unit))
    free = 1 - rows(forest, system.given)[:, :, None]  # rows of c_v
    a, tau = ([-product(x, free * c) for c in (by.q, by.v)] for x in (P, Q))
    tau = [c + x for c, x in zip((by.q, by.v), tau, strict=True)]
    return HybridDerivatives(*(Slopes(*(full_matrix(forest, x) for x in some)) for some in ((*a, P), (*tau, Q))))
