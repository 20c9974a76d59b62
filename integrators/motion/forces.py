"""Forces on a scene, and the accelerations that every scheme integrates."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from ...engine.dynamics.passive import motor_forces, passive_forces
from ...engine.loops.active_forces import loop_forces
from ...engine.loops.forward import forward
from ...engine.model import Model
from ...engine.state import State

Step = Array | float


class Drive(NamedTuple):
    """Motor commands and external forces, constant over a step; None if there are none.

    motors: (*batch, nv) motor commands; None: the motors' targets.
    forces: (*batch, nv) external forces along the degrees of freedom [N m, N].
    """

    motors: Any = None
    forces: Any = None

    def impulses(self, h: Step, others: Array | None = None) -> Array | None:
        """Return the impulses of the forces over a step of length h [s], plus `others` (*batch, nv) [N m s, N s].

        Schemes spread both over the step. On a free body they are a constant force and a constant moment about its
        centre of mass, in world axes, for any rotation.
        """
        if self.forces is None:
            return others
        own = self.forces * h
        return own if others is None else own + others


def acceleration(
    model: Model, state: State, h: Step, control: Array | None = None, impulses: Array | None = None
) -> Array:
    """Return dv/dt (..., nv).

    control: (..., nv) motor commands, held over the step; None: the motors' targets.
    impulses: (..., nv) joint-space impulses of the step [N m s, N s], acting as the constant force impulses/h.
    """
    tau = joint_forces(model, state, control)
    if impulses is not None:
        tau = tau + impulses / column(h)
    return forward(model, state.q, state.v, state.t, tau)


def joint_forces(model: Model, state: State, control: Array | None = None) -> Array:
    """Return the forces of springs, damping and motors, of joints and of loops (..., nv)."""
    q, v = state.q, state.v
    tau = passive_forces(model, q, v) + motor_forces(model, q, v, control)
    return tau + loop_forces(model, q, v, state.t) if model.topology.loops else tau


def column(h: Step) -> Step:
    """Return a step per lane in a shape that multiplies (..., nv)."""
    return h if jnp.ndim(h) == 0 else jnp.asarray(h)[..., None]
