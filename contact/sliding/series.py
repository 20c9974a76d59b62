"""Taylor series of one step of sliding, by recursion (Moore 1966; Griewank & Walther 2008, section 13.2).

With dp_z = r ds, r = |u_t|, theorem 3 of Holck (2005) for the tangential velocity is

    u_t' = r b - mu A u_t,    A = K[:2, :2],  b = K[:2, 2],

linear except for r, and r r = u_t . u_t. So r_k follows from products of lower coefficients, u_t,k+1 from r_k and
u_t,k; impulse, normal velocity and work follow by integration. Nothing is singular: slip stops as s -> infinity.

Letters: v = u_t / r(0), q = r / r(0), in units of the slip speed at the start of the step, which may be tiny.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ...engine.algebra.fence import fence
from ...engine.algebra.vec3 import Scalar, Sym3


class Series(NamedTuple):
    """Coefficients of s^0, s^1, ... over one step.

    vx, vy: slip velocity over the slip speed at the start, dimensionless.
    q: slip speed over the slip speed at the start, dimensionless.
    u_z: normal velocity.
    W: work of the normal impulse since the start of the step.
    """

    vx: list[Scalar]
    vy: list[Scalar]
    q: list[Scalar]
    u_z: list[Scalar]
    W: list[Scalar]


def sliding_series(
    K: Sym3, mu: Scalar, scale: Scalar, v: tuple[Scalar, Scalar], u_z: Scalar, w: Scalar, order: int
) -> Series:
    """Return the series of a step in direction v; the unit of s is 1/w, with w a rate of the problem; scale = r / w."""
    vx, vy, q = [v[0]], [v[1]], [jnp.ones_like(scale)]
    A = (mu * K.xx / w, mu * K.xy / w, mu * K.yy / w)
    b = (K.xz / w, K.yz / w)
    for _ in range(order):
        x, y, z = _next(vx, vy, q, A, b)
        vx, vy, q = [*vx, x], [*vy, y], [*q, z]
    u = _normal_velocity(vx, vy, q, u_z, scale * K.zz, -scale * mu * K.xz, -scale * mu * K.yz)
    return Series(vx, vy, q, u, _work(q, u, scale))


@fence
def _next(vx, vy, q, A, b):
    """Return coefficient k of v and q, from the lower ones."""
    k = len(q)
    x = (b[0] * q[-1] - (A[0] * vx[-1] + A[1] * vy[-1])) * (1 / k)
    y = (b[1] * q[-1] - (A[1] * vx[-1] + A[2] * vy[-1])) * (1 / k)
    z = vx[0] * x + vy[0] * y  # 2 q_0 q_k = 2 v_0 . v_k + (products of the coefficients between), and q_0 = 1
    for j in range(1, (k + 1) // 2):
        z = z + (vx[j] * vx[k - j] + vy[j] * vy[k - j] - q[j] * q[k - j])
    if k % 2 == 0:
        m = k // 2
        z = z + 0.5 * (vx[m] * vx[m] + vy[m] * vy[m] - q[m] * q[m])
    return x, y, z


@fence
def _normal_velocity(vx, vy, q, u_z, zz, xz, yz):
    """Return the series of u_z, from u_z' = K_z . p' with p' = r (-mu v, q)."""
    c = zip(vx[:-1], vy[:-1], q[:-1], strict=True)
    return [u_z] + [(xz * x + yz * y + zz * z) * (1 / (k + 1)) for k, (x, y, z) in enumerate(c)]


@fence
def _work(q, u, scale):
    """Return the series of W, from W' = r u_z."""
    W = [jnp.zeros_like(q[0])]
    for k in range(len(q) - 1):
        W.append(scale * sum(q[j] * u[k - j] for j in range(k + 1)) * (1 / (k + 1)))
    return W


def value(c: list[Scalar], s: Scalar) -> Scalar:
    """Return the value of the polynomial at s (Horner)."""
    y = c[-1]
    for a in reversed(c[:-1]):
        y = y * s + a
    return y


def value_and_slope(c: list[Scalar], s: Scalar) -> tuple[Scalar, Scalar]:
    """Return the value and the derivative of the polynomial at s."""
    y, d = c[-1], jnp.zeros_like(c[-1])
    for a in reversed(c[:-1]):
        y, d = y * s + a, d * s + y
    return y, d


def integral(c: list[Scalar], s: Scalar) -> Scalar:
    """Return the integral of a polynomial without its last term, from 0 to s."""
    return s * value([a * (1 / (k + 1)) for k, a in enumerate(c[:-1])], s)


@fence
def integrals(series: Series, s: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the integrals of vx, vy, q, and the work, since the start of the step."""
    return integral(series.vx, s), integral(series.vy, s), integral(series.q, s), value(series.W, s)
