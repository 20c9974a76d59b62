"""Derivatives of inverse dynamics."""

from __future__ import annotations

from typing import NamedTuple

import jax
from jax import Array

from ...forest import Forest
from ...model import Model
from ...shaped import Float
from ..bodies import inertias
from ..kinematics import propagate_poses
from .columns import columns
from .pairs import full_matrix, jacobians
from .tiles import in_tiles


class InverseDerivatives(NamedTuple):
    """Derivatives of the joint forces by displacements q, velocities v and accelerations a (M)."""

    q: Float[Array, "*batch nv nv"]
    v: Float[Array, "*batch nv nv"]
    a: Float[Array, "*batch nv nv"]


@jax.jit
def rnea_derivatives(
    model: Model, q: Float[Array, "*#batch nq"], v: Float[Array, "*#batch nv"], a: Float[Array, "*#batch nv"]
) -> InverseDerivatives:
    """Derivatives of `rnea(model, q, v, a)`: [j, k] is that of force j by the k-th q, v or a.

    Those by q are along the joints' own displacements, as `integrate_q` moves them.
    """
    return in_tiles(_derivatives, model, q, v, a)


def _derivatives(model: Model, q: Array, v: Array, a: Array) -> InverseDerivatives:
    forest = Forest.of(model, q=q, v=v, a=a)
    poses = propagate_poses(forest, model, q)
    qd, qdd = ([forest.per_dof(x, group) for group in forest.groups] for x in (v, a))
    dof_columns = columns(forest, model, poses, inertias(forest, model, poses), qd, qdd)
    return InverseDerivatives(*(full_matrix(forest, x) for x in jacobians(forest, model, dof_columns)))
