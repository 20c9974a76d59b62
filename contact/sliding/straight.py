"""The parts of an impact that are straight lines in p_z: slip on a ray, sticking, slip on the diverging ray.

Slip keeps its direction c if b - mu A c = f c (f = r'). While a contact sticks, friction is -A^-1 b per unit of p_z
(Holck 2005, theorem 4; references.md, Sticking). u_z is then linear in p_z and its work W quadratic: no integration.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from .ending import Ending

SECULAR_STEPS = 12  # Newton's steps for the diverging ray; 8 were enough for 100 000 random K in f64


class ImpactProgress(NamedTuple):
    """An impact so far.

    p: impulse, contact frame [N s].
    W: work of the normal impulse since W_c; stored separately because e^2 W_c may be below the rounding of W_c.
    p_c: p.z at the last end of a compression.
    W_c: least work of the normal impulse at the end of a compression, <= 0.
    restoring: whether u_z >= 0.
    ended: whether the impact is over.
    """

    p: Vec3
    W: Scalar
    p_c: Scalar
    W_c: Scalar
    restoring: Scalar
    ended: Scalar


class Line(NamedTuple):
    """A part of an impact that is a straight line in p_z.

    friction: (x, y) p_t'.
    rate: u_z'.
    length: in p_z, -1 if it has no end.
    """

    friction: tuple[Scalar, Scalar]
    rate: Scalar
    length: Scalar


def follow(line: Line, now: ImpactProgress, K: Sym3, u_0: Vec3, e: Scalar, ending: Ending) -> ImpactProgress:
    """Return the impact at the end of the line, or at its own end if that comes first.

    u_z has one slope on a line, so it changes sign at most once. The compression is followed to its end, then the rest.
    """
    far = jnp.finfo(jnp.result_type(line.rate)).max ** 0.25
    length = jnp.where(line.length < 0, far, line.length)
    rising = line.rate > 0
    now = now._replace(
        ended=now.ended | ((line.length < 0) & ~rising)
    )  # K is singular and friction alone holds: the contact jams

    def advance(now: ImpactProgress, d: Scalar) -> ImpactProgress:
        u_z = (u_0 + K @ now.p).z
        p = now.p + Vec3(line.friction[0] * d, line.friction[1] * d, d)
        return now._replace(p=p, W=now.W + d * (u_z + 0.5 * line.rate * d))

    # compression, to its end or the line's
    u_z = (u_0 + K @ now.p).z
    compressing = ~now.restoring & ~now.ended
    d = safe_div(jnp.maximum(-u_z, 0), line.rate, rising, far)
    reverses = compressing & rising & (d <= length)
    d = jnp.where(compressing, jnp.where(reverses, d, length), 0)
    now = advance(now, d)
    now = now._replace(
        p_c=jnp.where(reverses, now.p.z, now.p_c),
        W=jnp.where(reverses, jnp.maximum(now.W, 0), now.W),
        W_c=jnp.where(reverses, now.W_c + jnp.minimum(now.W, 0), now.W_c),
        restoring=now.restoring | reverses,
    )
    length = length - d

    # restitution, to its end by the law, to the end of the line, or to another compression
    u_z = (u_0 + K @ now.p).z
    restoring = now.restoring & ~now.ended
    target = ending.target(e, u_0.z, now.p_c, now.W_c)
    missing = jnp.where(restoring, jnp.maximum(target - ending.watched(u_z, now.p.z, now.W), 0), 0)
    d = ending.distance(missing, jnp.maximum(u_z, 0), line.rate)
    falling = line.rate < 0
    top = safe_div(jnp.maximum(u_z, 0), -line.rate, falling, far)
    ends = restoring & (d >= 0) & (d <= jnp.minimum(top, length))
    sinks = restoring & ~ends & (top < length)
    now = advance(now, jnp.where(restoring, jnp.where(ends, d, length), 0))
    return now._replace(restoring=now.restoring & ~sinks, ended=now.ended | ends)


def slip_line(c: tuple[Scalar, Scalar], K: Sym3, mu: Scalar, length: Scalar) -> Line:
    """Return the line of slip in direction c."""
    return Line((-mu * c[0], -mu * c[1]), K.zz - mu * (K.xz * c[0] + K.yz * c[1]), length)


def after_slip(K: Sym3, mu: Scalar) -> Line:
    """Return the line after slip has stopped: sticking if |A^-1 b| <= mu (theorem 4), else the diverging ray."""
    a = stuck_friction(K)
    sticks = a[0] * a[0] + a[1] * a[1] <= mu * mu + jnp.finfo(jnp.result_type(mu)).tiny
    c = diverging_ray(K, mu, ~sticks)
    slips = slip_line(c, K, mu, jnp.full_like(mu, -1))
    rate = K.zz - (K.xz * a[0] + K.yz * a[1])
    eps = jnp.finfo(jnp.result_type(mu)).eps
    rate = jnp.where(rate > 16 * eps * K.zz, rate, 0)  # K singular: friction alone holds the contact
    return Line(
        (jnp.where(sticks, -a[0], slips.friction[0]), jnp.where(sticks, -a[1], slips.friction[1])),
        jnp.where(sticks, rate, slips.rate),
        jnp.full_like(mu, -1),
    )


def stuck_friction(K: Sym3) -> tuple[Scalar, Scalar]:
    """Return A^-1 b, by the pseudo-inverse if A is singular; b is then in its range: K is positive semidefinite."""
    return solve(K, (K.xz, K.yz))


def solve(K: Sym3, y: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
    """Return A^-1 y, by the pseudo-inverse if A has rank one: a mechanism may be rigid along a tangent."""
    det, trace = K.xx * K.yy - K.xy * K.xy, K.xx + K.yy
    full = det > 16 * jnp.finfo(jnp.result_type(det)).eps * trace * trace
    some = trace > 0
    d, t = jnp.where(full, det, 1), jnp.where(some, trace, 1)
    return (
        jnp.where(full, (K.yy * y[0] - K.xy * y[1]) / d, jnp.where(some, y[0] / t, 0)),
        jnp.where(full, (K.xx * y[1] - K.xy * y[0]) / d, jnp.where(some, y[1] / t, 0)),
    )


def diverging_ray(K: Sym3, mu: Scalar, wanted: Scalar) -> tuple[Scalar, Scalar]:
    """Return the direction c = (mu A + f I)^-1 b with |c| = 1, f > 0: there is exactly one if |A^-1 b| > mu.

    |c| falls with f, and 1/|c| is nearly linear: Newton's method from the left is monotone (references.md, Sticking; as
    the secular equation of trust regions, Moré and Sorensen 1983). Only the last step is differentiated.
    """
    # lanes that do not need it: A = 1, b = 2 e_x
    A = [jnp.where(wanted, x, y) for x, y in zip((mu * K.xx, mu * K.xy, mu * K.yy), (1, 0, 1), strict=True)]
    b = [jnp.where(wanted, x, y) for x, y in zip((K.xz, K.yz), (2, 0), strict=True)]
    eps = jnp.finfo(jnp.result_type(mu)).eps

    def newton(A, b, f):
        xx, xy, yy = A[0] + f, A[1], A[2] + f
        scale = 1 / (xx * yy - xy * xy)
        c = (yy * b[0] - xy * b[1]) * scale, (xx * b[1] - xy * b[0]) * scale
        m = (yy * c[0] - xy * c[1]) * scale, (xx * c[1] - xy * c[0]) * scale
        square = c[0] * c[0] + c[1] * c[1]
        return c, f + (jnp.sqrt(square) - 1) * square / (c[0] * m[0] + c[1] * m[1])

    A0, b0 = jax.lax.stop_gradient((A, b))
    length, trace = jnp.sqrt(b0[0] * b0[0] + b0[1] * b0[1]), A0[0] + A0[2]
    f = jnp.maximum(length - trace, eps * (length + trace))
    f = jax.lax.fori_loop(0, SECULAR_STEPS, lambda _, f: jnp.maximum(newton(A0, b0, f)[1], f), f)
    _, f = newton(A, b, jax.lax.stop_gradient(f))
    c, _ = newton(A, b, f)
    return c
