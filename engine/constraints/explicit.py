"""Explicit motion constraints, a = G ydd + g, put on equations of motion H a + C = tau (Featherstone 2008, 3.2).

Projected on the motions that the constraints allow, the equations keep their form, without the constraint forces:

    H_G ydd + C_G = u,    H_G = G^T H G,  C_G = G^T (C + H g),  u = G^T tau        (3.20, 3.21)
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from .pseudo_inverse import apply, times


class Projected(NamedTuple):
    """inertia H_G (..., m, m), symmetric and positive definite as H is, and bias C_G (..., m)."""

    inertia: Array
    bias: Array


class Explicit(NamedTuple):
    """independent: ydd (..., m).  acceleration (..., n).  force: tau_c (..., n), the constraints' part."""

    independent: Array
    acceleration: Array
    force: Array


def project(H: Array, C: Array, G: Array, g: Array) -> Projected:
    """H_G and C_G. H (..., n, n), C (..., n), G (..., n, m) of independent columns, g (..., n)."""
    return Projected(times(G.mT, H, G), apply(G.mT, C + apply(H, g)))


def constrain_explicitly(H: Array, C: Array, tau: Array, G: Array, g: Array) -> Explicit:
    """Solve (3.18): H a - tau_c = tau - C, a = G ydd + g, G^T tau_c = 0. Shapes as in `project`, tau (..., n)."""
    inner, bias = project(H, C, G, g)
    ydd = jnp.linalg.solve(inner, (apply(G.mT, tau) - bias)[..., None])[..., 0]
    a = apply(G, ydd) + g
    return Explicit(ydd, a, apply(H, a) + C - tau)


def explicit_matrix(H: Array, G: Array) -> Array:
    """The matrix of (3.18), (..., 2 n + m, 2 n + m), whose unknowns are a, tau_c and ydd."""
    one = jnp.broadcast_to(jnp.eye(H.shape[-1], dtype=H.dtype), H.shape)
    none = [jnp.zeros((*G.shape[:-2], *shape), G.dtype) for shape in (H.shape[-2:], G.shape[-2:], (G.shape[-1],) * 2)]
    rows = ([H, -one, none[1]], [-one, none[0], G], [none[1].mT, G.mT, none[2]])
    return jnp.concatenate([jnp.concatenate(row, -1) for row in rows], -2)
