"""Classical Runge-Kutta of order 4 on (q, v).

Quaternions are integrated as four numbers (dq/dt = w q / 2 extends smoothly off the unit sphere, so the
order holds) and normalised at each stage. The four stages are one loop over the tableau: written out, they
would compile four times as long and run slower.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from ...engine.dynamics.kinematics import coordinate_rates, normalize_q
from ...engine.model import Model
from ...engine.state import State
from .forces import Step, acceleration, column

REACH = (0.0, 1 / 2, 1 / 2, 1.0)  # distance of each stage along the last slope, in steps
WEIGHT = (1 / 6, 1 / 3, 1 / 3, 1 / 6)

Slopes = tuple[Array, Array]


def rk4(model: Model, state: State, h: Step, control: Array | None = None, impulses: Array | None = None) -> State:
    """Take one step of length h [s]; order 4."""
    return classical(model, state, h, lambda now: acceleration(model, now, h, control, impulses))


def classical(model: Model, state: State, h: Step, accelerate: Callable[[State], Array]) -> State:
    """Take one step of length h [s] under dv/dt = accelerate(state)."""
    return classical_with_error(model, state, h, accelerate)[0]


def classical_with_error(
    model: Model, state: State, h: Step, accelerate: Callable[[State], Array]
) -> tuple[State, Array]:
    """Take one step, and return also the change of the velocities (..., nv) by the second guess of those midway.

    It is (h w)^3 / 4 of a velocity that changes at the rate w.
    """
    dt = column(h)

    def stage(carry: tuple[Slopes, Slopes], coefficients: tuple[Array, Array]) -> tuple[tuple[Slopes, Slopes], Array]:
        (q_slope, v_slope), (q_end, v_end) = carry
        reach, weight = coefficients
        q = normalize_q(model, state.q + q_slope * (reach * dt))
        v = state.v + v_slope * (reach * dt)
        slopes = coordinate_rates(model, q, v), accelerate(State(q, v, state.t + h * reach))
        return (slopes, (q_end + slopes[0] * (weight * dt), v_end + slopes[1] * (weight * dt))), slopes[1]

    still = jnp.zeros_like(state.q), jnp.zeros_like(state.v)
    tableau = jnp.asarray(REACH, state.q.dtype), jnp.asarray(WEIGHT, state.q.dtype)
    (_, (q, v)), dv = jax.lax.scan(stage, (still, (state.q, state.v)), tableau)
    return State(normalize_q(model, q), v, state.t + h), (dv[2] - dv[1]) * dt
