"""The longest step that resolves springs, position motors and damping in the joints of trees.

Small motions about a pose obey M dv + D v + K q = 0. The squares of the frequencies are at most the eigenvalues of
M^-1 K, the rates of decay at most those of M^-1 D. No eigenvalue exceeds the largest absolute row sum of
K^1/2 M^-1 K^1/2 or D^1/2 M^-1 D^1/2, which have the same eigenvalues. A step of order 4 follows an oscillation of half
a radian per step to 2e-4 of its amplitude, and is stable if nothing decays below e^-2.7 in a step.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..contact.contact_jacobian import inverse_mass_matrix
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.topology import Topology

SWING = 0.5  # [rad] phase of the fastest oscillation in a step
DECAY = 2.0  # step in units of the shortest time constant of decay


def has_joints(topology: Topology) -> bool:
    """Return whether the scene has more than free bodies."""
    return set(topology.joints) - {"floating", "fixed"} != set()


def resolved_step(model: Model, q: Array) -> Array:
    """Return the longest resolved step (*batch) at the coordinates q (*batch, nq) [s].

    It is inf if no joint has a spring, a position motor or damping.
    """
    inverse = jnp.abs(inverse_mass_matrix(model, q))

    def largest(x: Array) -> Array:
        x = jnp.broadcast_to(x, (*q.shape[:-1], x.shape[-1]))
        s = jnp.sqrt(to_blocks(trees_of(model.topology), x)[:-1])
        return (s[:, :, None] * inverse * s[:, None]).sum(1).max((0, 1))  # column sums: M^-1 is symmetric

    square = largest(model.stiffness + model.motor_kp)
    rigid = jnp.isinf(model.motor_kd)  # rigid motors act by impulses
    rate = largest(model.damping + jnp.where(rigid, 0, model.motor_kd))
    swing = safe_div(SWING, safe_sqrt(square), otherwise=jnp.inf)
    return jnp.minimum(swing, safe_div(DECAY, rate, otherwise=jnp.inf))
