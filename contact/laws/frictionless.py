"""Frictionless restitution: p_n = -(1 + e) u_n / K_nn for any mu. Newton's, Poisson's and Stronge's laws agree here."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from ...engine.results import OK
from .law import Law


def normal_impulse(K: Sym3, u: Vec3, e: Scalar) -> Array:
    """Return -(1 + e) u_n / K_nn, or zero if the bodies do not approach or nothing can move."""
    strikes = (u.z < 0) & (K.zz > 0)
    return safe_div(-(1 + e) * u.z, K.zz, strikes)


def _impulse(K: Sym3, u: Vec3, mu: Scalar, e: Scalar, e_t: Scalar) -> tuple[Vec3, Array]:
    p = normal_impulse(K, u, e)
    return Vec3(jnp.zeros_like(p), jnp.zeros_like(p), p), jnp.full(p.shape, OK, jnp.int32)


FRICTIONLESS = Law("frictionless", _impulse, "no friction: p_n = -(1 + e) u_n / K_nn")
