"""Free flight exact, trees to order 4: the default scheme.

A free body's centre of mass moves on a parabola, which Runge-Kutta of order 4 follows without error, but
only in coordinates in which it is a parabola: those of the centre of mass. So the origins of all free
bodies are moved there for the step and back afterwards. Rotation and trees are of order 4, and so are arcs
under motors and damping on a free body, whose forces turn with it or change with its speed.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.fence import fence
from ...engine.algebra.rotation import Quat
from ...engine.algebra.vec3 import Vec3
from ...engine.closures.forward import forward
from ...engine.forest import Forest
from ...engine.model import Model, Topology
from ...engine.state import State
from .forces import Step, column, joint_forces
from .rk4 import classical, rk4


def exact(model: Model, state: State, h: Step, control: Array | None = None, impulses: Array | None = None) -> State:
    """One step of length h [s]; free bodies' arcs exact under constant forces, the rest order 4."""
    free = free_bodies(model.topology)
    if not free.any():
        return rk4(model, state, h, control, impulses)
    arm = jnp.where(free[:, None], model.com, 0)
    centered = model.replace(com=model.com - arm)
    spread = 0.0 if impulses is None else _about_centers(model, state, arm, impulses) / column(h)

    def accelerate(now: State) -> Array:
        # motors and damping act at the origins, and on the velocities of the origins
        actual = _moved(model, now, -arm)
        forces = joint_forces(model, actual, control)
        return forward(centered, now.q, now.v, now.t, _about_centers(model, actual, arm, forces) + spread)

    return _moved(model, classical(centered, _moved(model, state, arm), h, accelerate), -arm)


def free_bodies(topology: Topology) -> np.ndarray:
    """(nl,) true for floating links that carry nothing and are in no loop."""
    floating = np.array([joint == "floating" for joint in topology.joints], bool)
    tied = [*topology.parents, *(end for loop in topology.loops for end in (loop.a, loop.b))]
    return floating & ~np.isin(np.arange(topology.n_links), tied)


@fence
def _move(q, v, arm):
    r = Quat(*q[3:]).rotate(Vec3.of(arm))
    p, u = Vec3(*q[:3]) + r, Vec3(*v[3:]) + Vec3(*v[:3]).cross(r)
    return (p.x, p.y, p.z, *q[3:]), (*v[:3], u.x, u.y, u.z)


@fence
def _recenter(q, impulse, arm):
    n = Vec3(*impulse[:3]) - Quat(*q[3:]).rotate(Vec3.of(arm)).cross(Vec3(*impulse[3:]))
    return n.x, n.y, n.z, *impulse[3:]


def _moved(model: Model, state: State, arm: Array) -> State:
    """The state with the origin of each floating link moved by `arm` (..., nl, 3), given in the link's frame."""
    forest = Forest.of(model, q=state.q, v=state.v)
    moved = []
    for group in forest.groups:
        q, v = forest.coordinates(state.q, group), forest.per_dof(state.v, group)
        moved.append(_move(q, v, forest.rows(arm, 2, group.links)) if group.joint == "floating" else (q, v))
    q, v = zip(*moved, strict=True)
    return State(forest.join_coordinates(q), forest.join_dofs(v), state.t)


def _about_centers(model: Model, state: State, arm: Array, impulses: Array) -> Array:
    """Impulses, or forces, given about the origins, taken about points `arm` (..., nl, 3) away in the links' frames."""
    forest = Forest.of(model, q=state.q, impulses=impulses)
    taken = []
    for group in forest.groups:
        q, p = forest.coordinates(state.q, group), forest.per_dof(impulses, group)
        taken.append(_recenter(q, p, forest.rows(arm, 2, group.links)) if group.joint == "floating" else p)
    return forest.join_dofs(taken)
