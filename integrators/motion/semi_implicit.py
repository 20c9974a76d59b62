"""Semi-implicit Euler: velocities first, then positions with the new velocities. For games, and for stiff motors.

The scheme is symplectic if the mass matrix is constant, as for points and spheres; on trees its energy drifts. Damping
of joints, also of motors, acts with the velocity at the end of the step, (M + h D) dv = h tau(q, v), and is stable for
any step.
"""

from __future__ import annotations

from jax import Array

from ...engine.dynamics.kinematics import integrate_q
from ...engine.model import Model
from ...engine.state import State
from .forces import Step, acceleration, column
from .softened import has_joints, with_damping


def semi_implicit(
    model: Model, state: State, h: Step, control: Array | None = None, impulses: Array | None = None
) -> State:
    """Take one step of length h [s]; order 1."""
    soft = with_damping(model, state, control, column(h)) if has_joints(model.topology) else model
    v = state.v + acceleration(soft, state, h, control, impulses) * column(h)
    return State(integrate_q(model, state.q, v, h), v, state.t + h)
