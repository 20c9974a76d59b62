"""The wrench that a joint transmits: active forces of motors and springs, and constraint forces of its bearings.

    f_J = T_a tau + T lambda (3.34),    T_a^T S = 1 (3.35),    T^T S = 0 (3.36),    S^T f_J = tau (3.37)

S spans the motions of the joint, T the wrenches orthogonal to them; T_a says how the motor pushes: by a pure couple
about the axis, or by a gear's tooth at some radius. It does not change the motion, only the load of the bearings
(Featherstone 2008, section 3.5 and example 3.2). Wrenches are (moment, force), twists (angular, linear), in any common
frame.
"""

from __future__ import annotations

from jax import Array
from jax.numpy.linalg import solve

from .pseudo_inverse import apply, times


def active_subspace(S: Array, wrenches: Array) -> Array:
    """T_a (..., 6, nf): the wrenches of actuators (..., 6, nf), in the amounts that do the work of unit joint forces.

    S: (..., 6, nf).  One column an actuator; none may do without work what another does.
    """
    return solve(times(S.mT, wrenches).mT, wrenches.mT).mT


def bearing_forces(transmitted: Array, S: Array, Ta: Array) -> Array:
    """T lambda = f_J - T_a S^T f_J (..., 6): the part of a joint's wrench that its bearings carry.

    transmitted: f_J (..., 6), see `joint_wrenches`; S, Ta: (..., 6, nf), in its axes and about its point. The columns
    of `jacobian(model, q, link)` that belong to the link's own joint are S in world axes about the link's origin.
    """
    return transmitted - apply(Ta, apply(S.mT, transmitted))
