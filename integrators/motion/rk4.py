"""Classical Runge-Kutta of order 4 on (q, v).

Quaternions are integrated as four numbers (dq/dt = w q / 2 extends smoothly off the unit sphere, so the
order holds) and normalised after each stage.
"""

from __future__ import annotations

from jax import Array

from ...engine.dynamics.kinematics import coordinate_rates, normalize_q
from ...engine.model import Model
from ...engine.state import State
from .forces import Step, acceleration, column


def rk4(model: Model, state: State, h: Step, control: Array | None = None, impulses: Array | None = None) -> State:
    """One step of length h [s]; order 4."""
    dt = column(h)

    def slope(q: Array, v: Array) -> tuple[Array, Array]:
        return coordinate_rates(model, q, v), acceleration(model, q, v, h, control, impulses)

    q, v = state.q, state.v
    q1, v1 = slope(q, v)
    q2, v2 = slope(normalize_q(model, q + q1 * (dt / 2)), v + v1 * (dt / 2))
    q3, v3 = slope(normalize_q(model, q + q2 * (dt / 2)), v + v2 * (dt / 2))
    q4, v4 = slope(normalize_q(model, q + q3 * dt), v + v3 * dt)
    q_end = q + (q1 + 2 * (q2 + q3) + q4) * (dt / 6)
    return State(normalize_q(model, q_end), v + (v1 + 2 * (v2 + v3) + v4) * (dt / 6), state.t + h)
