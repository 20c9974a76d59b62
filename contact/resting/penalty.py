"""Contact as a spring and a damper at each point (Holck 2.2.1, strafmetoden), for comparison.

Depth makes force: f_n = k depth - d u_n, never pulling; friction opposes sliding with mu f_n, smoothed below a slip of
k_t u_t. Stiffness is chosen for the step so that it stays stable: the contact's own frequency times h is SWIFT, with
its effective mass 1/K_nn. So what rests sinks in by about g (h / SWIFT)^2, which is what penalties cost.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.vec3 import Vec3
from ...engine.dynamics.trees import from_blocks, to_blocks, trees_of
from ...engine.model import Model
from ..contact_jacobian import ContactJacobian, joint_impulses, relative_velocity
from ..contacts import Contacts
from .solve import Midway, Rest

SWIFT = 0.3  # a contact's frequency times the step: below 2 for stability, and less as four corners share a body
DAMPING = 1.0  # of critical


def penalty(
    model: Model,
    contacts: Contacts,
    rows: ContactJacobian,
    v: Array,
    v_free: Array,
    h: Array | float,
    midway: Midway,
    grips: None = None,
    window: None = None,
) -> Rest:
    """Springs and dampers of all contacts that overlap, as impulses over a step of length h [s]."""
    del v_free, midway, grips, window
    trees = trees_of(model.topology)
    u = relative_velocity(rows, to_blocks(trees, v))
    overlaps = contacts.active & (contacts.gap < 0)
    mass = 1 / jnp.where(overlaps, rows.K.zz, 1)
    swift = SWIFT / h
    force = mass * (-swift * swift * contacts.gap - 2 * DAMPING * swift * u.z)
    p_n = jnp.where(overlaps, jnp.maximum(force, 0) * h, 0)
    slip = jnp.sqrt(jnp.where(overlaps, u.x * u.x + u.y * u.y, 1))
    share = jnp.minimum(contacts.friction * p_n / jnp.maximum(slip, jnp.finfo(slip.dtype).tiny), mass * SWIFT)
    p = Vec3(jnp.where(overlaps, -share * u.x, 0), jnp.where(overlaps, -share * u.y, 0), p_n)
    spread = from_blocks(trees, joint_impulses(rows, p, trees.n + 1))
    return Rest(v, spread, p, jnp.zeros_like(contacts.code))
