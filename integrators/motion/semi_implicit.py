"""Semi-implicit Euler: velocities first, then positions with the new velocities. For games.

The scheme is symplectic if the mass matrix is constant, as for points and spheres; on trees its energy drifts.
"""

from __future__ import annotations

from jax import Array

from ...engine.dynamics.kinematics import integrate_q
from ...engine.model import Model
from ...engine.state import State
from .forces import Step, acceleration, column


def semi_implicit(
    model: Model, state: State, h: Step, control: Array | None = None, impulses: Array | None = None
) -> State:
    """Take one step of length h [s]; order 1."""
    v = state.v + acceleration(model, state, h, control, impulses) * column(h)
    return State(integrate_q(model, state.q, v, h), v, state.t + h)
