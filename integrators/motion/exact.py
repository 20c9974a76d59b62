"""Free flight exact, trees to order 4: the default scheme.

A free body's centre of mass moves on a parabola, which Runge-Kutta of order 4 follows without error, but
only in coordinates in which it is a parabola: those of the centre of mass. So the origins of all free
bodies are moved there for the step and back afterwards. Rotation and trees are of order 4.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Vec3
from ...engine.model import Model, Topology
from ...engine.state import State
from .forces import Step
from .rk4 import rk4


def exact(model: Model, state: State, h: Step, control: Array | None = None, impulses: Array | None = None) -> State:
    """One step of length h [s]; free bodies' arcs exact under constant forces, the rest order 4."""
    free = free_bodies(model.topology)
    if not free:
        return rk4(model, state, h, control, impulses)
    com = jnp.where(np.isin(np.arange(model.topology.n_links), free)[:, None], model.com, 0)
    centered = model.replace(com=model.com - com)
    if impulses is not None:
        impulses = _moments(model, state, free, impulses)
    end = rk4(centered, _shifted(model, state, free, 1), h, control, impulses)
    return _shifted(model, end, free, -1)


def free_bodies(topology: Topology) -> tuple[int, ...]:
    """Floating links that carry nothing."""
    inner = set(topology.parents)
    return tuple(i for i, joint in enumerate(topology.joints) if joint == "floating" and i not in inner)


def _arms(model: Model, state: State, free: tuple[int, ...]) -> Array:
    """From the origin to the centre of mass of each free body, world axes (..., n, 3)."""
    start = np.array([model.topology.q_start[i] for i in free])
    quat = Quat.of_array(state.q[..., start[:, None] + np.arange(3, 7)])
    arm = quat.rotate(Vec3.of(model.com[..., np.array(free), :]))
    return jnp.stack([arm.x, arm.y, arm.z], -1)


def _shifted(model: Model, state: State, free: tuple[int, ...], sign: int) -> State:
    """The state with the free bodies' origins moved to their centres of mass (+1) or back (-1)."""
    topology, arm = model.topology, _arms(model, state, free) * sign
    place = np.array([topology.q_start[i] for i in free])[:, None] + np.arange(3)
    turn = np.array([topology.v_start[i] for i in free])[:, None] + np.arange(3)
    sweep = jnp.cross(state.v[..., turn], arm)
    return State(state.q.at[..., place].add(arm), state.v.at[..., turn + 3].add(sweep), state.t)


def _moments(model: Model, state: State, free: tuple[int, ...], impulses: Array) -> Array:
    """Impulses given about the origins, taken about the centres of mass."""
    turn = np.array([model.topology.v_start[i] for i in free])[:, None] + np.arange(3)
    arm = _arms(model, state, free)
    return impulses.at[..., turn].add(-jnp.cross(arm, impulses[..., turn + 3]))
