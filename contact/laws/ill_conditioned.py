"""Ill-conditioned impacts: an impulse whose effect is dominated by rounding is moved towards a reliable one.

If K is nearly singular (ratio of its eigenvalues below 1e-8 in float64, 1e-4 in float32), an impulse along a direction
of small response may be so large that rounding errors determine its work, whether the bodies still approach, or whether
it is in the friction cone. An impulse outside the cone is first projected on its surface. The frictionless plastic
impulse p_0 = (0, 0, -u_n / K_nn) is in every friction cone, ends the approach and loses energy. The cone is convex, so
the line from p_0 to the law's p lies in it, and the work along it is a parabola. The result is the last impulse on the
line that leaves no approach and, under a law that only loses energy, gains none, with rounding errors included.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Scalar, Sym3, Vec3
from .frictionless import normal_impulse

# errors allowed without a change of the impulse, in units of |p| |u| and of |u|, as `resolve_impact` documents
ALLOWED, ALLOWED_F32 = 1e-10, 1e-4


def limit_ill_conditioned(K: Sym3, u: Vec3, p: Vec3, mu: Scalar, loses: Scalar) -> tuple[Vec3, Array]:
    """Return p, or a replacement that ends the approach within the cone of mu; and whether p is replaced.

    loses: whether p must also gain no energy.
    """
    eps = jnp.finfo(jnp.result_type(p.z)).eps
    allowed = ALLOWED if eps < 1e-10 else ALLOWED_F32
    tiny = jnp.finfo(jnp.result_type(p.z)).tiny
    square = p.x * p.x + p.y * p.y
    tangential = jnp.sqrt(jnp.maximum(square, tiny))
    leaves = (square > tiny) & (tangential > mu * p.z * (1 + 1000 * eps))
    inside = jnp.where(leaves, mu * p.z / tangential, 1)
    p = Vec3(inside * p.x, inside * p.y, p.z)

    sizes = jax.tree.map(jnp.abs, (K, u, p))
    after = u + K @ p
    gained = p.dot(u + after)  # twice the energy
    work, perhaps = sizes[2].dot(sizes[1]), gained + 4 * eps * _rounding_scale(K, p).dot(sizes[2])
    gains = loses & ((gained > 64 * eps * work) | (perhaps > allowed * work))

    plastic = normal_impulse(K, u, 0 * p.z)
    step = Vec3(p.x, p.y, p.z - plastic)
    rounded = _rounding_scale(K, step)
    speed = jnp.sqrt(jnp.maximum(u.dot(u), tiny))
    approach = jnp.maximum(eps * rounded.z, -after.z)
    closes = (u.z < 0) & (approach > allowed * speed)

    # twice the energy at p_0 + s (p - p_0) is at most a s^2 + b s + c, including the rounding of both parts
    a = step.dot(K @ step) + 8 * eps * rounded.dot(jax.tree.map(jnp.abs, step))
    b = 2 * (step.dot(u) + plastic * (K @ step).z)
    c = plastic * u.z * (1 - 16 * eps)
    root = jnp.sqrt(jnp.maximum(b * b - 4 * a * c, 0))
    falls = (b <= 0) & (a > 0)
    most = safe_div(root - b, 2 * a, falls, safe_div(-2 * c, b + root))
    part = safe_div(allowed * speed, approach, closes, 1)
    part = jnp.minimum(part, jnp.where(gains, most, 1))
    other = Vec3(part * step.x, part * step.y, part * p.z + (1 - part) * plastic)  # its rounding leaves no cone
    changed = gains | closes
    return jax.tree.map(lambda x, y: jnp.where(changed, x, y), other, p), changed | leaves


def _rounding_scale(K: Sym3, p: Vec3) -> Vec3:
    """Return the sums of absolute values in K p: its rounding error is a few epsilons times these."""
    K, p = jax.tree.map(jnp.abs, (K, p))
    return K @ p
