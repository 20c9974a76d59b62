"""Coulomb's law at one contact: the distance of impulses from the law, and its linearization around them.

    p   impulse (t1, t2, n) [N s]         u   relative velocity after all impulses, less the target along n [m/s]
    0 <= p_n  _|_  u_n >= 0               |p_t| <= mu p_n;  u_t = 0 inside, else p_t = -mu p_n u_t / |u_t|

The law holds if and only if the projection of z = p - u / k is p, along n on [0, inf) and across on the disc of radius
mu p_n, for any k > 0 (Alart & Curnier 1991, augmented Lagrangian). z tells whether a contact is open, sticks or slips.
k is the contact's own K along n and across, K_n and K_t, so that the distance from the law, times k, is a velocity.
This is Coulomb's law with a round cone, not its convex relaxation, in which sliding contacts lift off.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.fence import compute_once
from ...engine.algebra.safe import safe_sqrt
from ...engine.algebra.vec3 import Sym3, Vec3


class Linear(NamedTuple):
    """The linearized law for small du: p_n' = n - nn du_n, p_t' = t + slide p_n' - tt du_t.

    t: (x, y), n: impulses (C, *batch) at the present u.  slide: (x, y) mu times the direction of friction if it slips.
    tt: (xx, yy, xy), symmetric.  nn: >= 0.
    """

    t: tuple[Array, Array]
    n: Array
    slide: tuple[Array, Array]
    tt: tuple[Array, Array, Array]
    nn: Array

    @property
    def p(self) -> Vec3:
        """p' at du = 0."""
        return Vec3(self.t[0] + self.slide[0] * self.n, self.t[1] + self.slide[1] * self.n, self.n)

    def across(self, row: Vec3) -> Vec3:
        """Return D @ row, with D from p' = p - D du; components (C, ...) with axes of their own behind the first."""
        wide = lambda x: x.reshape(x.shape[0], *(1,) * (row.z.ndim - x.ndim), *x.shape[1:])  # noqa: E731
        xx, yy, xy, x, y, nn = (wide(x) for x in (*self.tt, *self.slide, self.nn))
        z = nn * row.z
        return Vec3(xx * row.x + xy * row.y + x * z, xy * row.x + yy * row.y + y * z, z)


def scales(K: Sym3) -> tuple[Array, Array]:
    """Return k across and along the normal, (C, *batch) [1/kg].

    If a contact cannot move in one direction, the value of the other is used; any value would do.
    """
    across = (K.xx + K.yy) / 2
    along = jnp.where(K.zz > 0, K.zz, jnp.where(across > 0, across, 1))
    return jnp.where(across > 0, across, along), along


def project(p: Vec3, mu: Array) -> Vec3:
    """Return p with p_n >= 0 and p_t shortened to mu p_n."""
    return _shorten_to_disc(p, mu, jnp.maximum(p.z, 0))


def distance(K: Sym3, p: Vec3, u: Vec3, mu: Array) -> Array:
    """Return the distance of p and u from the law, (C, *batch) [m/s]."""
    kt, kn = scales(K)
    z = Vec3(p.x - u.x / kt, p.y - u.y / kt, p.z - u.z / kn)
    wanted = _shorten_to_disc(z, mu, jnp.maximum(p.z, 0))
    along = jnp.abs(p.z - jnp.maximum(z.z, 0)) * kn
    return jnp.maximum(along, jnp.maximum(jnp.abs(p.x - wanted.x), jnp.abs(p.y - wanted.y)) * kt)


class Relaxation(NamedTuple):
    """Coefficients of one relaxation step, (C, *batch).

    across: 1 / (the larger tangential eigenvalue of K) [kg].
    along: 1 / K_nn [kg].
    x, y: change of the tangential velocity by a unit normal impulse [1/kg].
    mu: friction coefficient.
    """

    across: Array
    along: Array
    x: Array
    y: Array
    mu: Array

    @staticmethod
    def of(K: Sym3, mu: Array) -> Relaxation:
        mean, half = (K.xx + K.yy) / 2, (K.xx - K.yy) / 2
        k = mean + jnp.sqrt(half * half + K.xy * K.xy + jnp.finfo(mean.dtype).tiny)  # the larger eigenvalue across
        return Relaxation(1 / k, 1 / scales(K)[1], K.xz, K.yz, mu)

    def relax(self, p: Vec3, u: Vec3) -> Vec3:
        """Take one relaxation step of each contact by itself: first along n, then across."""
        p_n = jnp.maximum(p.z - u.z * self.along, 0)
        change = p_n - p.z
        x, y = p.x - (u.x + self.x * change) * self.across, p.y - (u.y + self.y * change) * self.across
        return _shorten_to_disc(Vec3(x, y, p_n), self.mu, p_n)


def closed_and_sticking(u: Vec3, mu: Array, band: Array) -> tuple[Array, Array]:
    """Return the first guess: contacts that open slower than the band [m/s] are closed; they stick if mu > 0."""
    closed = u.z <= band
    return closed, closed & (mu > 0)


def behaviour(K: Sym3, p: Vec3, u: Vec3, mu: Array) -> tuple[Array, Array]:
    """Return whether contacts are closed and whether they stick, (C, *batch), as determined by z."""
    kt, kn = scales(K)
    x, y, n = p.x - u.x / kt, p.y - u.y / kt, p.z - u.z / kn
    closed = n > 0
    return compute_once((closed, closed & (mu > 0) & (x * x + y * y <= (mu * n) ** 2)))


def linear(
    K: Sym3,
    p: Vec3,
    u: Vec3,
    mu: Array,
    guess: tuple[Array, Array],
    soft: Array,
    soft_t: Array,
    center: Vec3,
) -> Linear:
    """Linearize the law around p and u for contacts that behave as guessed, with a compliance of soft k along n and
    soft_t k across (*batch).

    Closed: u + du + soft k (p' - center) = 0 along n; sticking: across too, with soft_t. The compliance makes the
    impulses of redundant contacts unique. With p as the center it resists the change p' - p, so its effect vanishes at
    the solution.
    Slipping: p_t' = mu p_n' d', with d' = z'/|z'| turning as z' does.
    """
    closed, stick = guess
    kt, kn = scales(K)
    slip = closed & ~stick
    tiny = jnp.finfo(kt.dtype).tiny
    x, y = p.x - u.x / kt, p.y - u.y / kt
    length2 = x * x + y * y
    moves = slip & (length2 > tiny)
    length = safe_sqrt(length2, moves, 1)
    dx, dy = (jnp.where(moves, s / length, 0) for s in (x, y))
    # d' turns by -(du across d) / (k |z|) (1 + ...), solved for p', which is on both sides
    stiff, stiff_t = 1 / (soft * kt), 1 / (soft_t * kt)
    share = jnp.minimum(mu * jnp.maximum(p.z - u.z / kn, 0) / length, 1 - soft / 2)
    turning = jnp.where(moves, jnp.minimum(share / ((1 - share) * kt), stiff), 0)
    nn = jnp.where(closed, 1 / (soft * kn), 0)
    p_n = jnp.where(closed, center.z - u.z * nn, 0)
    across = u.y * dx - u.x * dy
    tx = jnp.where(stick, center.x - u.x * stiff_t, turning * across * dy)
    ty = jnp.where(stick, center.y - u.y * stiff_t, -turning * across * dx)
    xx = jnp.where(stick, stiff_t, turning * dy * dy)
    yy = jnp.where(stick, stiff_t, turning * dx * dx)
    return Linear((tx, ty), p_n, (mu * dx, mu * dy), (xx, yy, -turning * dx * dy), nn)


def _shorten_to_disc(z: Vec3, mu: Array, p_n: Array) -> Vec3:
    """Return z with z_t shortened to mu p_n, and p_n along n."""
    # no branch: fusion could compute it twice, round it differently, and shorten x but not y (`fence.compute_once`)
    length2 = jnp.maximum(z.x * z.x + z.y * z.y, jnp.finfo(p_n.dtype).tiny ** 0.5)
    short = jnp.minimum(mu * p_n / jnp.sqrt(length2), 1)
    return Vec3(z.x * short, z.y * short, p_n)
