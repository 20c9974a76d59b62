"""Contact as a spring and a damper at each point (Holck 2.2.1, strafmetoden), for comparison.

Depth makes force: f_n = k depth - d u_n, never pulling; friction opposes sliding with mu f_n, smoothed below a slip of
k_t u_t. Stiffness is chosen for the step so that it stays stable: the contact's own frequency times h is SWIFT, with
its effective mass 1/K_nn. So what rests sinks in by about g (h / SWIFT)^2, which is what penalties cost.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ...engine.algebra.vec3 import Sym3, Vec3

SWIFT = 0.3  # a contact's frequency times the step: below 2 for stability, and less as four corners share a body
DAMPING = 1.0  # of critical


def penalty(K: Sym3, u: Vec3, mu: Any, e: Any, gap: Any, h: Any) -> Vec3:
    """The impulse of a spring and a damper over a step of length h [s]; restitution e is not needed."""
    del e
    mass, swift = 1 / K.zz, SWIFT / h
    force = mass * (-swift * swift * gap - 2 * DAMPING * swift * u.z)
    p_n = jnp.maximum(force, 0) * h
    slip = jnp.sqrt(u.x * u.x + u.y * u.y)
    share = jnp.minimum(mu * p_n / jnp.maximum(slip, jnp.finfo(slip.dtype).tiny), mass * SWIFT)
    return Vec3(-share * u.x, -share * u.y, p_n)
