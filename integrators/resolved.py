"""The longest step that resolves springs, position motors and damping in the joints of trees.

Small motions about a pose obey M dv + D v + K q = 0. The squares of the frequencies are at most the eigenvalues of
M^-1 K, the rates of decay at most those of M^-1 D. No eigenvalue exceeds the largest absolute row sum of
K^1/2 M^-1 K^1/2 or D^1/2 M^-1 D^1/2, which have the same eigenvalues. A step of order 4 follows an oscillation of half
a radian per step to 2e-4 of its amplitude, and is stable if nothing decays below e^-2.7 in a step. Schemes of order 1
have inertias M + h D (`motion/semi_implicit.py`): nothing decays too fast for them, and what is damped swings slowly.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ..contact.contact_jacobian import inverse_mass_matrix
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from .motion.forces import Drive, acceleration
from .motion.softened import finite_kd, with_damping

SWING = 0.5  # [rad] phase of the fastest oscillation in a step
DECAY = 2.0  # step in units of the shortest time constant of decay


def resolved_step(model: Model, q: Array) -> Array:
    """Return the longest resolved step (*batch) at the coordinates q (*batch, nq) [s].

    It is inf if no joint has a spring, a position motor or damping.
    """
    inverse = jnp.abs(inverse_mass_matrix(model, q))
    return jnp.minimum(_swing(model, inverse), _decay(model, inverse))


def resolved_when_damped(model: Model, state: State, motors: Array | None, longest: Array) -> Array:
    """Return the longest resolved step (*batch) of a scheme of order 1, at most `longest` [s].

    The step's own damping slows down what swings: each estimate is that for the inertias of the one before.
    """

    def slow_down(h: Array) -> Array:
        soft = with_damping(model, state, motors, h[..., None])
        return jnp.minimum(h, _swing(soft, jnp.abs(inverse_mass_matrix(soft, state.q))))

    undamped = _swing(model, jnp.abs(inverse_mass_matrix(model, state.q)))
    longest = jnp.broadcast_to(longest, undamped.shape)
    return jax.lax.cond(
        (undamped < longest).any(), lambda: jnp.maximum(undamped, slow_down(slow_down(longest))), lambda: longest
    )


def expected_when_damped(model: Model, state: State, drive: Drive, max_dt: Array, dv: Array) -> Array:
    """Return the accelerations (*batch, nv) that a step of `max_dt` of order 1 has, dv if nothing decays fast."""

    def whole() -> Array:
        soft = with_damping(model, state, drive.motors, max_dt[..., None])
        return acceleration(soft, state, 1.0, drive.motors, drive.impulses(1.0))

    fast = _decay(model, jnp.abs(inverse_mass_matrix(model, state.q))) < max_dt
    return jax.lax.cond(fast.any(), whole, lambda: dv)


def _decay(model: Model, inverse: Array) -> Array:
    rate = _largest(model, inverse, model.damping + finite_kd(model))
    return safe_div(DECAY, rate, otherwise=jnp.inf)


def _swing(model: Model, inverse: Array) -> Array:
    square = _largest(model, inverse, model.stiffness + model.motor_kp)
    return safe_div(SWING, safe_sqrt(square), otherwise=jnp.inf)


def _largest(model: Model, inverse: Array, x: Array) -> Array:
    """Return the largest row sum (*batch) of X^1/2 M^-1 X^1/2 for a diagonal matrix X (nv,) or (*batch, nv).

    inverse: absolute entries of M^-1 (T, w, w, *batch).
    """
    x = jnp.broadcast_to(x, (*inverse.shape[3:], x.shape[-1]))
    s = jnp.sqrt(to_blocks(trees_of(model.topology), x)[:-1])
    return (s[:, :, None] * inverse * s[:, None]).sum(1).max((0, 1))  # column sums: M^-1 is symmetric
