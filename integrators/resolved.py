"""The longest step that resolves what acts in the joints of trees: springs, position motors, damping.

Small motions about a pose obey M dv + D v + K q = 0. The squares of their rates are at most those of M^-1 K, those of
what damping makes decay those of M^-1 D, and no eigenvalue is larger than the largest sum of a row's magnitudes: of
K^1/2 M^-1 K^1/2 and D^1/2 M^-1 D^1/2, which have the same ones. A step of order 4 follows an oscillation of half a
radian a step to 2e-4 of its amplitude, and is stable where what decays does not fall below e^-2.7 in it.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..contact.contact_jacobian import inverse_mass_matrix
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.topology import Topology

SWING = 0.5  # [rad] of the fastest oscillation in a step
DECAY = 2.0  # times the time constant of what decays fastest


def has_joints(topology: Topology) -> bool:
    """Return whether anything is more than a free body."""
    return set(topology.joints) - {"floating", "fixed"} != set()


def resolved_step(model: Model, q: Array) -> Array:
    """The resolved step (*batch) at the coordinates q (*batch, nq) [s]; inf where no joint has a spring, a position
    motor or damping."""
    inverse = jnp.abs(inverse_mass_matrix(model, q))

    def largest(x: Array) -> Array:
        x = jnp.broadcast_to(x, (*q.shape[:-1], x.shape[-1]))
        s = jnp.sqrt(to_blocks(trees_of(model.topology), x)[:-1])
        return (s[:, :, None] * inverse * s[:, None]).sum(1).max((0, 1))  # of columns: M^-1 is symmetric

    square = largest(model.stiffness + model.motor_kp)
    rigid = jnp.isinf(model.motor_kd)  # such motors are held by impulses
    rate = largest(model.damping + jnp.where(rigid, 0, model.motor_kd))
    swing = jnp.where(square > 0, SWING / jnp.sqrt(jnp.where(square > 0, square, 1)), jnp.inf)
    return jnp.minimum(swing, jnp.where(rate > 0, DECAY / jnp.where(rate > 0, rate, 1), jnp.inf))
