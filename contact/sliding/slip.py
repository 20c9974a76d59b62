"""Slip at one moment of an impact: its speed and direction, their rates, and the straight line on which it ends.

Letters: c = u_t / r, c_perp = c turned by 90 degrees, d = b - mu A c = u_t' in p_z (references.md, Sticking).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ...engine.algebra.safe import safe_div, safe_sqrt
from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from .straight import ImpactProgress, Line, slip_line


class Slip(NamedTuple):
    """Slip at one moment; rates are in p_z.

    r: speed.
    c: direction.
    stopped: whether r is 0 up to rounding.
    f: rate of the speed, r'.
    g: rate of the direction times the speed, r th'.
    stiffness: stiffness of the direction, mu c_perp . A c_perp.
    rate: the fastest rate of the problem.
    """

    r: Scalar
    c: tuple[Scalar, Scalar]
    stopped: Scalar
    f: Scalar
    g: Scalar
    stiffness: Scalar
    rate: Scalar


def slip_of(u: Vec3, K: Sym3, mu: Scalar) -> Slip:
    eps = jnp.finfo(jnp.result_type(mu)).eps
    square = u.x * u.x + u.y * u.y
    stopped = square <= (16 * eps) ** 2
    r = safe_sqrt(square, ~stopped, 1)
    x, y = jnp.where(stopped, 1, u.x / r), jnp.where(stopped, 0, u.y / r)
    dx, dy = K.xz - mu * (K.xx * x + K.xy * y), K.yz - mu * (K.xy * x + K.yy * y)
    stiffness = mu * (K.xx * y * y - 2 * K.xy * x * y + K.yy * x * x)
    rate = jnp.abs(K.xz) + jnp.abs(K.yz) + mu * (K.xx + K.yy)
    rate = jnp.where(rate > 0, rate, 1)
    return Slip(r, (x, y), stopped, dx * x + dy * y, dy * x - dx * y, stiffness, rate)


def is_straight(slip: Slip, mu: Scalar) -> Scalar:
    """Return whether slip keeps its direction: it is on a ray, or close enough to an attracting ray."""
    eps = jnp.finfo(jnp.result_type(mu)).eps
    g, pull = jnp.abs(slip.g), slip.f + slip.stiffness  # th' = g, and g' = -pull
    drawn = (slip.r * g <= tolerance(eps) * pull) & (g <= 1e-2 * pull)
    return (g <= 4 * eps * slip.rate) | drawn | (mu == 0)


def last_slip(now: ImpactProgress, K: Sym3, u_0: Vec3, mu: Scalar) -> Line:
    """Return the straight line along the nearest ray to the point where slip stops.

    Newton's method on the turning g gives d, the angle to the ray. It decays as exp(-pull s), while r' = f + f_1 d with
    f_1 = -mu c . A c_perp: slip stops at p_z = (r / |f|) (1 + f_1 d / (pull + |f|)), to first order.
    If every direction is a ray (K of a ball), g and pull are both rounding errors, and d is 0.
    """
    eps = jnp.finfo(jnp.result_type(mu)).eps
    u = u_0 + K @ now.p
    slip = here = slip_of(u, K, mu)
    d = 0.0
    for _ in range(4):  # from 1e-2 to rounding
        pull = slip.f + slip.stiffness
        known = (jnp.abs(slip.g) > 4 * eps * slip.rate) | (pull > 1e-3 * slip.rate)
        near = known & (jnp.abs(slip.g) < 0.1 * pull)
        rotation = safe_div(slip.g, pull, near)
        slip = slip_of(Vec3(slip.c[0] - rotation * slip.c[1], slip.c[1] + rotation * slip.c[0], u.z), K, mu)
        d = d - rotation
    x, y = slip.c
    f_1 = -mu * (K.xy * (x * x - y * y) + (K.yy - K.xx) * x * y)
    dies = slip.f < 0
    f = jnp.where(dies, -slip.f, 1)
    some = dies & (d != 0)
    delay = safe_div(f_1 * d, slip.stiffness, some)  # stiffness = pull + |f|
    length = jnp.where(dies, here.r / f * (1 + delay), -1)
    return slip_line(slip.c, K, mu, jnp.where(here.stopped, 0, length))


def tolerance(eps: np.floating) -> np.floating:
    """Return the error allowed in velocities, in units of |u|."""
    return 128 * eps if eps < 1e-10 else 2 * eps
