"""Motion constraints on equations of motion H a + C = tau (Featherstone 2008, section 3.2): plain arrays.

Implicit ones, K a = k:

    [H  K^T] [   a    ]   [tau - C]
    [K   0 ] [-lambda ] = [   k   ]        (3.17)

The matrix has rank n + rank K. Departure: it is not solved in this form. K's null space, by the projector P, gives the
same accelerations if constraints are redundant, and the least-norm force of all possible ones; H must be
positive definite only on the motions that the constraints allow.

Explicit ones, a = G ydd + g. Projected on the motions that they allow, the equations keep their form, without the
constraint forces:

    H_G ydd + C_G = u,    H_G = G^T H G,  C_G = G^T (C + H g),  u = G^T tau        (3.20, 3.21)
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from .pseudo_inverse import apply, beside, pseudo_inverse, size, times

DEPENDENT = 1e3  # times the rounding of K: singular values of K that are smaller count as zero


class Implicit(NamedTuple):
    """acceleration (..., n), and force (..., nc): lambda, of least norm if the constraints are redundant."""

    acceleration: Array
    force: Array


def constrain_implicitly(H: Array, C: Array, tau: Array, K: Array, k: Array) -> Implicit:
    """Solve (3.17). H (..., n, n) symmetric; C, tau (..., n); K (..., nc, n); k (..., nc) in the range of K."""
    small = DEPENDENT * jnp.finfo(K.dtype).eps * size(K)
    inverse = pseudo_inverse(K, small)
    P, start = beside(inverse, K), apply(inverse, k)
    scale = jnp.trace(H, axis1=-2, axis2=-1)[..., None, None]
    inner = times(P, H, P) + scale * times(inverse, K)  # the second term only fills the complement of P
    rest = apply(P, tau - C - apply(H, start))
    a = start + apply(P, jnp.linalg.solve(inner, rest[..., None])[..., 0])
    return Implicit(a, apply(inverse.mT, apply(H, a) + C - tau))


def implicit_matrix(H: Array, K: Array) -> Array:
    """The matrix of (3.17), (..., n + nc, n + nc)."""
    nothing = jnp.zeros((*K.shape[:-1], K.shape[-2]), K.dtype)
    return jnp.concatenate([jnp.concatenate([H, K.mT], -1), jnp.concatenate([K, nothing], -1)], -2)


class Projected(NamedTuple):
    """inertia H_G (..., m, m), symmetric and positive definite as H is, and bias C_G (..., m)."""

    inertia: Array
    bias: Array


class Explicit(NamedTuple):
    """independent: ydd (..., m).  acceleration (..., n).  force: tau_c (..., n), due to the constraints."""

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
