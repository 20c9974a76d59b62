"""The algebraic law of many real-time engines, for comparison: stop the slip, or keep the impulse on the cone.

The impulse ends slip and leaves u_n = -e u_n before, if it is inside Coulomb's cone; otherwise it is on the cone, with
the same tangential direction and the same u_n after. Friction then opposes the slip that sticking would have stopped,
not the actual slip: it need not oppose the slip after the impact or dissipate the most, and an impact may gain energy
(code ENERGY_GAINED). If the bodies would jam (K_nn + mu b . t <= 0), friction is left out.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.safe import safe_div, safe_sqrt
from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from ...engine.results import OK
from ..sliding.straight import solve, stuck_friction
from .frictionless import normal_impulse
from .law import Law


def stopping_impulse(K: Sym3, u: Vec3, e: Scalar, strikes: Scalar) -> Vec3:
    """Return p with u_t + (K p)_t = 0 and u_n + (K p)_n = -e u_n, by A and its Schur complement K_nn - b . A^-1 b.

    If that vanishes (K singular, the contact jams), the normal impulse is the frictionless one.
    """
    a, w = stuck_friction(K), solve(K, (u.x, u.y))
    eps = jnp.finfo(jnp.result_type(u.z)).eps
    rate = K.zz - (K.xz * a[0] + K.yz * a[1])
    firm = strikes & (rate > 16 * eps * K.zz)
    p_n = safe_div(-(1 + e) * u.z + K.xz * w[0] + K.yz * w[1], rate, firm, normal_impulse(K, u, e))
    return Vec3(*(jnp.where(strikes, x, 0) for x in (-w[0] - a[0] * p_n, -w[1] - a[1] * p_n, p_n)))


def _impulse(K: Sym3, u: Vec3, mu: Scalar, e: Scalar, e_t: Scalar) -> tuple[Vec3, Array]:
    strikes = (u.z < 0) & (K.zz > 0)
    p = stopping_impulse(K, u, e, strikes)
    square = p.x * p.x + p.y * p.y
    slips = strikes & ((p.z < 0) | (square > (mu * p.z) * (mu * p.z)))
    size = safe_sqrt(square)
    tx, ty = safe_div(p.x, size), safe_div(p.y, size)
    resists = K.zz + mu * (K.xz * tx + K.yz * ty)
    works = slips & (resists > 1e-3 * K.zz)
    on_cone = safe_div(-(1 + e) * u.z, resists, works, normal_impulse(K, u, e))
    along = jnp.where(works, mu * on_cone, 0)
    q = Vec3(along * tx, along * ty, on_cone)
    p = Vec3(*(jnp.where(slips, a, b) for a, b in zip(q.xyz, p.xyz, strict=True)))
    return p, jnp.full(mu.shape, OK, jnp.int32)


CONE_PROJECTION = Law(
    "cone_projection", _impulse, "stick if the cone allows, else its direction on the cone; may gain energy (flagged)"
)
