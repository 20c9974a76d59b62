"""Implicit midpoint rule on the configuration's Lie group, for long energy behaviour.

    v1 = v0 + h a(q_m, v_m),  q1 = q0 exp(h v_m),  v_m = (v0 + v1)/2,  q_m = q0 exp(h v_m / 2)

The scheme is its own inverse under h -> -h (Hairer, Lubich, Wanner 2006, chapter V), so energy errors do not
drift. The implicit equation is solved by a fixed number of fixed-point sweeps. Each reduces the error by a factor of
about h times the rate of the motion. Keep that product below about 1/2: with a larger one the sweeps end before they
converge, and the energy drifts.
"""

from __future__ import annotations

import jax
from jax import Array

from ...engine.dynamics.kinematics import integrate_q
from ...engine.model import Model
from ...engine.state import State
from .forces import Step, acceleration, column

SWEEPS = 8


def lie_midpoint(
    model: Model, state: State, h: Step, control: Array | None = None, impulses: Array | None = None
) -> State:
    """Take one step of length h [s]; order 2, symmetric."""

    def sweep(_: int, v_end: Array) -> Array:
        v_mid = (state.v + v_end) / 2
        q_mid = integrate_q(model, state.q, v_mid, h / 2)
        mid = State(q_mid, v_mid, state.t + h / 2)
        return state.v + acceleration(model, mid, h, control, impulses) * column(h)

    v_end = jax.lax.fori_loop(0, SWEEPS, sweep, state.v)
    return State(integrate_q(model, state.q, (state.v + v_end) / 2, h), v_end, state.t + h)
