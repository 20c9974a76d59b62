"""Projection of a state on the constraints, by the least motion in the metric of the masses.

q <- q + dq,  dq = -M^-1 A^T W^+ G(q)        Newton's method; integration leaves little to do
v <- v - M^-1 A^T W^+ (A v + dG/dt)          the effect of an impulse of the constraints
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ..dynamics.aba import factorize
from ..dynamics.bodies import inertias
from ..dynamics.kinematics import integrate_q, propagate_poses, propagate_velocities
from ..forest import Forest
from ..model import Model
from ..native.surface import native_jit
from ..state import State
from .evaluation import by_loop, errors, evaluate_loops, rates
from .forward import couple

ITERATIONS = 2  # of Newton's method; a step of order 4 leaves errors that one iteration brings to rounding
ROUNDS = 8  # of ITERATIONS, from a state that is far from closed


@jax.jit
def project(model: Model, q: Array, v: Array, t: Array | float) -> tuple[Array, Array]:
    """q (..., nq) and v (..., nv) that satisfy the constraints at the time t (...)."""
    batch = Forest.of(model, q=q, v=v).batch
    t = jnp.broadcast_to(jnp.asarray(t, q.dtype), batch)

    def iteration(_: int, now: tuple[Array, Array]) -> tuple[Array, Array]:
        q, v = now
        dq, dv = corrections(model, q, v, t)
        return integrate_q(model, q, dq, 1.0), v + dv

    return jax.lax.fori_loop(0, ITERATIONS, iteration, (q, v))


def close_loops(model: Model, state: State) -> State:
    """Return the state with all loops closed, its velocities too, moved as little as possible, measured by the masses.

    For a model with other lengths or frames than the state was made for (`model.replace`); otherwise the first step of
    a run closes the loops at one blow. If they cannot be closed, `closed(model, q, v, t).error` of the result is not 0.
    It works under jit and vmap, and has derivatives in both modes.
    """
    if not model.topology.loops:
        return state
    return State(*_closed_far(model, state.q, state.v, state.t), state.t)


@native_jit
def _closed_far(model: Model, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    return jax.lax.fori_loop(0, ROUNDS, lambda _, now: project(model, *now, t), (q, v))


@native_jit
def loop_errors(model: Model, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """Return errors and rates (m,) of the loops' rows, in the loops' order, as those of `closed`."""
    forest = Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    loops, order = evaluate_loops(forest, model, poses), by_loop(model.topology)
    return errors(forest, model, loops, q, t)[order], rates(
        forest, model, loops, propagate_velocities(forest, poses, v), v, t
    )[order]


def corrections(model: Model, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """The displacement and the velocity change (*batch, nv) that remove the errors to first order."""
    forest = Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    loops = evaluate_loops(forest, model, poses)
    factors = factorize(forest, model, poses, inertias(forest, model, poses))
    coupling = couple(forest, model, poses, factors, loops)
    off = errors(forest, model, loops, q, t), rates(forest, model, loops, propagate_velocities(forest, poses, v), v, t)
    wrong = coupling.solve(jnp.stack(off, 1))
    return coupling.response(-wrong[:, 0]), coupling.response(-wrong[:, 1])
