"""The acceleration of a rigid body on a joint, caused by a force anywhere on it (Featherstone 2008, section 3.6).

    f + f_c = I a + p,    v in S,  f_c orthogonal to S        (3.45, 3.46)

p is v x* I v minus the weight. Three methods give the same result: the apparent inverse inertia (method 1, 3.53-3.55),
the constraint forces (method 2, 3.60), and the joint's own coordinates (method 3, 3.62-3.64).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from .constraints import Implicit, Projected, constrain_implicitly, project
from .pseudo_inverse import apply, times


def apparent_inverse_inertia(I: Array, S: Array) -> Array:
    """Phi = S (S^T I S)^-1 S^T (..., 6, 6): symmetric, positive semi-definite, with the range of S (3.54).

    I: (..., 6, 6) about the frame's origin.  S: (..., 6, nf) of independent columns.
    """
    return times(S, jnp.linalg.solve(times(S.mT, I, S), S.mT))


def bias_acceleration(I: Array, S: Array, Sdot_qd: Array, p: Array) -> Array:
    """b (..., 6), the acceleration without a force: a = Phi f + b (3.53, 3.55).  Sdot_qd: dS/dt qd (..., 6)."""
    return Sdot_qd - apply(apparent_inverse_inertia(I, S), apply(I, Sdot_qd) + p)


def body_by_forces(I: Array, p: Array, f: Array, T: Array, Tdot_v: Array) -> Implicit:
    """a (..., 6) and lambda (..., nc), f_c = T lambda: the KKT system (3.60).

    T: (..., 6, nc) spans the constraint forces.  Tdot_v: dT^T/dt v (..., nc).
    """
    return constrain_implicitly(I, p, f, T.mT, -Tdot_v)


def body_in_coordinates(I: Array, S: Array, Sdot_qd: Array, p: Array) -> Projected:
    """H = S^T I S (..., nf, nf) and C = S^T (I dS/dt qd + p) of H qdd + C = S^T f (3.61-3.64)."""
    return project(I, p, S, Sdot_qd)
