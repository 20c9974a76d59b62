"""Contact as a spring and a damper at each point (Holck 2.2.1, strafmetoden), for comparison.

The normal force is f_n = k depth - d u_n, and never pulls. Friction opposes sliding with mu f_n, smoothed below a slip
of k_t u_t. The stiffness is chosen for the step so that it stays stable: the contact's own frequency times h is SWIFT,
with its effective mass 1/K_nn. So resting bodies sink in by about g (h / SWIFT)^2, the drawback of penalties.
"""

from __future__ import annotations

import jax.numpy as jnp

from ...engine.algebra.vec3 import Scalar, Sym3, Vec3

SWIFT = 0.3  # a contact's frequency times the step: below 2 for stability, less because four corners share a body
DAMPING = 1.0  # part of critical damping


def penalty(K: Sym3, u: Vec3, mu: Scalar, e: Scalar, gap: Scalar, h: Scalar) -> Vec3:
    """Return the impulse of a spring and a damper over a step of length h [s]; restitution e is not used."""
    del e
    mass, swift = 1 / K.zz, SWIFT / h
    force = mass * (-swift * swift * gap - 2 * DAMPING * swift * u.z)
    p_n = jnp.maximum(force, 0) * h
    slip = jnp.sqrt(u.x * u.x + u.y * u.y)
    share = jnp.minimum(mu * p_n / jnp.maximum(slip, jnp.finfo(slip.dtype).tiny), mass * SWIFT)
    return Vec3(-share * u.x, -share * u.y, p_n)
