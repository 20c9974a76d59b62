"""Hybrid dynamics with loops: degrees of freedom u have given accelerations, the others, v, forces (Kim 2012, 3.3).

    (a_r, tau_r) = hybrid(a_u, tau_v)                 the tree alone
    Y = M_vv^-1 A_v^T                                 the tree without weight and speed, once per row: (0, A_v^T)
    lambda = -(A_v Y)^+ (A a_r + bias)                (76)
    a_v = a_rv + Y lambda,  tau_u = tau_ru + tau_cu - A_u^T lambda      (78-80)

tau_c sums lambda times the forces of the solves for Y. If more is given than the loops leave free (m > n_v), only some
a_u are possible, and then tau_u has many solutions; the rules of inverse.py choose one (end of 3.3).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .. import results
from ..algebra.pseudo_inverse import apply, beside, pseudo_inverse, size, times
from ..dynamics.hybrid import hybrid
from ..forest import Forest
from ..model import Model
from ..shaped import Bool, Float, Int, Real
from .inverse import DEPENDENT, Minimize, is_satisfied, is_torque, part, strain
from .jacobian import closed


class ConstrainedHybrid(NamedTuple):
    """acceleration and force of every degree of freedom, given and found: M a + b = force + A^T lambda.

    constraint_force: lambda (..., m), of the loops' rows, in the loops' order [N, N m].
    redundancy: number of independent ways in which the computed forces can strain against each other.
    code: LOOPS_FORBID if the loops do not allow the given accelerations.
    """

    acceleration: Float[Array, "*batch nv"]
    force: Float[Array, "*batch nv"]
    constraint_force: Float[Array, "*batch m"]
    redundancy: Int[Array, "*batch"]
    code: Int[Array, "*batch"]


def constrained_hybrid(
    model: Model,
    q: Float[ArrayLike, "*#batch nq"],
    v: Float[ArrayLike, "*#batch nv"],
    t: Real[ArrayLike, "*#batch"] = 0.0,
    *,
    given: Bool[ArrayLike, "*#batch nv"],
    values: Float[ArrayLike, "*#batch nv"],
    minimize: Minimize = "constraint_force",
    tolerance: float | None = None,
) -> ConstrainedHybrid:
    """Solve M a + b = tau + A^T lambda, A a + bias = 0 where `values` holds a_i if given_i, else tau_i.

    t [s].  values: [rad/s^2, m/s^2 or N m, N].
    minimize, tolerance: as for `constrained_inverse`.
    """
    q, v = jnp.asarray(q), jnp.asarray(v)
    t, values = (jnp.asarray(x, q.dtype) for x in (t, values))
    given = jnp.asarray(given, bool)
    return _hybrid(model, q, v, t, given, values, is_torque(minimize), part(tolerance, q.dtype))


@jax.jit
def _hybrid(model: Model, q, v, t, given, values, least_torque, tolerance) -> ConstrainedHybrid:
    forest = Forest.of(model, q=q, v=v, given=given, values=values)
    A, bias, _, _ = closed(model, q, v, t)
    alone = hybrid(model, q, v, given, values)
    still, rest = model.replace(gravity=jnp.zeros_like(model.gravity)), jnp.zeros_like(v)
    pulls = jnp.where(given[..., None, :], 0, A)
    Y, T = jax.vmap(lambda row: hybrid(still, q, rest, given, row), -2, -2)(pulls)
    # (76); singular values of A_v Y are squares of those of A_v
    W, least = times(A, Y.mT), DEPENDENT**2 * jnp.finfo(A.dtype).eps
    inverse = pseudo_inverse(W, least * size(A) * size(Y))
    force = -apply(inverse, apply(A, alone.acceleration) + bias)
    # (79, 80)
    acceleration = alone.acceleration + apply(Y.mT, force)
    torque = jnp.where(given, alone.force + apply((T - A).mT, force), 0)
    small = least**0.5 * size(A)
    torque, force, redundancy = strain(A, given, beside(inverse, W), torque, force, small, least_torque)
    code = jnp.where(is_satisfied(A, bias, v, acceleration, tolerance), results.OK, results.LOOPS_FORBID)
    code = jnp.where(jnp.isfinite(acceleration).all(-1) & jnp.isfinite(torque).all(-1), code, results.NOT_FINITE)
    code = jnp.broadcast_to(code, forest.batch).astype(jnp.int32)
    return ConstrainedHybrid(acceleration, jnp.where(given, torque, values), force, redundancy, code)
