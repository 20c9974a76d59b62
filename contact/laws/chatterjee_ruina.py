"""Chatterjee and Ruina's algebraic law with a tangential restitution (J. Appl. Mech. 65, 1998, 939-951).

    P_I = -(u_n / K_nn) n      the frictionless plastic impulse
    P_II = -K^-1 u             the sticking plastic impulse
    P = (1 + e) P_I + (1 + e_t) (P_II - P_I), or, if |P_t| > mu P_n,
    P = (1 + e) P_I + kappa (P_II - P_I),
    kappa = mu (1 + e) n . P_I / (|P_II,t| - mu n . (P_II - P_I)),

the smallest kappa at which P is on the cone (the denominator is positive there). u_n after is -e times before, and no
energy is gained for e in [0, 1], e_t in [-1, 1]. e_t = 1 is Garwin's superball: slip returns reversed; e_t = 0 ends
slip; e_t = -1 is no friction. This is the only law here that can reverse slip.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.safe import safe_div, safe_sqrt
from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from ...engine.results import OK
from .cone_projection import stopping_impulse
from .frictionless import normal_impulse
from .law import Law


def _impulse(K: Sym3, u: Vec3, mu: Scalar, e: Scalar, e_t: Scalar) -> tuple[Vec3, Array]:
    strikes = (u.z < 0) & (K.zz > 0)
    one = normal_impulse(K, u, 0 * e)
    two = stopping_impulse(K, u, 0 * e, strikes)
    x, y, rise = two.x, two.y, two.z - one
    square = x * x + y * y
    slips = strikes & (square > 0)
    tangential = safe_sqrt(square, slips)
    beyond = tangential - mu * rise
    leaves = slips & ((1 + e_t) * beyond > mu * (1 + e) * one)
    kappa = safe_div(mu * (1 + e) * one, beyond, leaves, 1 + e_t)
    p = Vec3(kappa * x, kappa * y, (1 + e) * one + kappa * rise)
    return p, jnp.full(mu.shape, OK, jnp.int32)


CHATTERJEE_RUINA = Law(
    "chatterjee_ruina", _impulse, "algebraic; tangential_restitution returns slip (superballs); never gains energy",
    tangential=True, loses=True,
)  # fmt: skip
