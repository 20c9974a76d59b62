"""The longest step that resolves springs, position motors and damping in the joints of trees.

Small motions about a pose obey M dv + D v + K q = 0. The squares of the frequencies are at most the eigenvalues of
M^-1 K, the rates of decay at most those of M^-1 D. No eigenvalue exceeds the largest absolute row sum of
K^1/2 M^-1 K^1/2 or D^1/2 M^-1 D^1/2, which have the same eigenvalues. A step of order 4 follows an oscillation of half
a radian per step to 2e-4 of its amplitude, and is stable if nothing decays below e^-2.7 in a step. Schemes of order 1
have inertias M + h D (`motion/semi_implicit.py`): nothing decays too fast for them, and what is damped swings slowly.

Loads too hold joints, as a weight holds its pendulum (`load_stiffness.py`). The default scheme divides a step that is
too long for them (`motion/exact.py`). For the others, such swings need not be accurate, but stable: an oscillation of
2.8 radians per step grows in schemes of order 4, one of 2 in semi-implicit Euler. `TAUT` is for a single link: the
fastest swing of a chain of equal points is at 4 T / (m l), a quarter of its row sum, since neighbours turn in opposite
directions.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ..contact.contact_jacobian import inverse_mass_matrix
from ..engine.algebra.safe import safe_div, safe_sqrt
from ..engine.dynamics.load_stiffness import load_stiffness
from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State
from .motion.forces import Drive, acceleration
from .motion.softened import finite_kd, with_damping

SWING = 0.5  # [rad] phase of the fastest oscillation in a step
TAUT = 1.9  # [rad] the same of a single link under load; of a chain it is 0.9 to 1.1
DECAY = 2.0  # step in units of the shortest time constant of decay


def resolved_step(model: Model, state: State, dv: Array | None) -> Array:
    """Return the longest resolved step (*batch) from a state [s].

    dv: (*batch, nv) accelerations; None: loads are resolved by the scheme itself. The step is inf if no joint has a
    spring, a position motor, damping or a load.
    """
    inverse, taut = jnp.abs(inverse_mass_matrix(model, state.q)), 0.0 if dv is None else _taut(model, state, dv)
    return jnp.minimum(_swing(model, inverse, taut), _decay(model, inverse))


def longest_stable_step(model: Model, state: State) -> Array:
    """Return the step (*batch) above which oscillations of springs, position motors and loads may grow [s].

    It is twice what `TAUT` allows: about 1.9 radians of the fastest swing of a chain.
    """
    load = jnp.maximum(load_stiffness(model, state.q, state.v, acceleration(model, state, 1.0)), 0)
    square = _largest(model, jnp.abs(inverse_mass_matrix(model, state.q)), model.stiffness + model.motor_kp + load)
    return safe_div(2 * TAUT, safe_sqrt(square), otherwise=jnp.inf)


def resolved_when_damped(model: Model, state: State, dv: Array, motors: Array | None, longest: Array) -> Array:
    """Return the longest resolved step (*batch) of a scheme of order 1, at most `longest` [s].

    The step's own damping slows down what swings: each estimate is that for the inertias of the one before.
    """
    taut = _taut(model, state, dv)

    def slow_down(h: Array) -> Array:
        soft = with_damping(model, state, motors, h[..., None])
        return jnp.minimum(h, _swing(soft, jnp.abs(inverse_mass_matrix(soft, state.q)), taut))

    undamped = _swing(model, jnp.abs(inverse_mass_matrix(model, state.q)), taut)
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


def _taut(model: Model, state: State, dv: Array) -> Array:
    """Return the stiffness under load as that of springs that are allowed as long a step (*batch, nv)."""
    return jnp.maximum(load_stiffness(model, state.q, state.v, dv), 0) * (SWING / TAUT) ** 2


def _swing(model: Model, inverse: Array, taut: Array | float) -> Array:
    square = _largest(model, inverse, model.stiffness + model.motor_kp + taut)
    return safe_div(SWING, safe_sqrt(square), otherwise=jnp.inf)


def _largest(model: Model, inverse: Array, x: Array) -> Array:
    """Return the largest row sum (*batch) of X^1/2 M^-1 X^1/2 for a diagonal matrix X (nv,) or (*batch, nv).

    inverse: absolute entries of M^-1 (T, w, w, *batch).
    """
    x = jnp.broadcast_to(x, (*inverse.shape[3:], x.shape[-1]))
    s = jnp.sqrt(to_blocks(trees_of(model.topology), x)[:-1])
    return (s[:, :, None] * inverse * s[:, None]).sum(1).max((0, 1))  # column sums: M^-1 is symmetric
