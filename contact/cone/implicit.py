"""Derivatives of impulses in Coulomb's cone, by the implicit function theorem: no search is differentiated.

At the solution each contact is open, sticks or slips, and the law around it is linear (`coulomb.linear`). With e the
change of u at fixed impulses, dp the change of the impulses and W = J Y,

    dp = -D (e + W dp)  +  the effect of the change of mu        for all contacts together

in the limit of zero compliance in D. If contacts are redundant, W is singular, and only the velocities have a
derivative. So the system is solved for the velocities as in `many.py`, (1 + Y D J) dV = Y f, with f the residual, and
refined: each solve reduces the residual by the factor of the compliance, 1e-6 (float64) or 3e-4 (float32).
The linear solve has a transpose, and so has the derivative.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.safe import safe_sqrt
from ...engine.algebra.vec3 import Sym3, Vec3
from ..contact_jacobian import ContactJacobian, apply_impulses, relative_velocity
from . import coulomb
from .elimination import elimination_order, solve, transpose
from .many import ActiveRows, system_matrix
from .search import FRICTION_LAST

ROUNDS = 6  # with 3, derivatives with friction had errors of up to some percent, other ones in reverse mode
SOFT = {4: 3e-4, 8: 1e-6}  # by bytes per number; normals have less, friction more (`search.FRICTION_LAST`)


class ParameterChanges(NamedTuple):
    """Tangents of the parameters of `solve_cone`: the Jacobian, free velocities, targets and friction coefficients."""

    rows: ContactJacobian
    V: Array
    target: Array
    mu: Array


def solution_derivative(
    rows: ContactJacobian, target: Array, mu: Array, d: ParameterChanges, p: Vec3, V: Array, which: Array, count: Array
) -> tuple[Vec3, Array]:
    """Return the tangents of the impulses p (C,) and of the velocities V (T + 1, w) after them.

    rows, target, mu, p: of the contacts, zeros for inactive ones.
    d: tangents of the parameters.
    which: (C,) indices of the active contacts, the first `count`.
    """
    u = relative_velocity(rows, V)
    u = Vec3(u.x, u.y, u.z - target)
    real = rows.K.zz > 0
    K = jax.tree.map(lambda k, unit: jnp.where(real, k, unit), rows.K, Sym3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    closed, stick = coulomb.behaviour(K, p, u, mu)
    soft = SOFT[V.dtype.itemsize]
    load = p.z * K.zz
    closed = closed & (load > soft * load.max(0, initial=0))  # a redundant contact without load stays so
    stick = stick & closed
    along, across = (jnp.full(V.shape[2:], soft * x, V.dtype) for x in (FRICTION_LAST**-0.5, FRICTION_LAST**0.5))
    law = coulomb.linear(K, p, u, mu, (closed, stick), along, across, p)
    square = p.x * p.x + p.y * p.y
    slips = closed & ~stick & (square > 0)
    size = safe_sqrt(square, slips, 1)
    x, y = (jnp.where(slips, s / size, 0) for s in (p.x, p.y))  # direction of friction

    contacts = ActiveRows(rows.tree, rows.J, rows.Y, which, count)
    order = elimination_order(rows.tree, which, count, len(V) - 1)
    H = system_matrix(contacts, order, law)
    transposed = transpose(order, H)
    bare = rows.still
    still = jnp.zeros_like(V)
    # linear in the tangents, so that they may be transposed
    move, push = functools.partial(relative_velocity, every=True), functools.partial(apply_impulses, every=True)

    def solve_response(r: Array) -> Array:
        """Solve (1 + Y D J) x = r, (T + 1, w); the solve has a transpose."""
        return jax.lax.custom_linear_solve(
            lambda x: push(rows, x, law.across(move(bare, x))),
            r,
            lambda _, r: solve(order, H, r),
            lambda _, r: solve(order, transposed, r),
        )

    V_at_fixed_p = push(rows._replace(Y=d.rows.Y), d.V, p)  # tangent of V at fixed impulses
    e = move(bare, V_at_fixed_p) + move(rows._replace(J=d.rows.J, drift=d.rows.drift), V)
    e = Vec3(e.x, e.y, e.z - d.target)
    dp = Vec3(*(jnp.zeros_like(p.z),) * 3)
    for _ in range(ROUNDS):
        now = law.across(e + move(bare, push(rows, still, dp)))
        most = mu * dp.z + d.mu * p.z
        left = (jnp.where(stick, 0, most * x - dp.x), jnp.where(stick, 0, most * y - dp.y), jnp.where(closed, 0, -dp.z))
        f = Vec3(*left) - now
        dp = dp + f - law.across(move(bare, solve_response(push(rows, still, f))))
    return dp, push(rows, V_at_fixed_p, dp)
