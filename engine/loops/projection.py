"""Projection of a state on the constraints, by the least motion in the metric of the masses.

q <- q + dq,  dq = -M^-1 A^T W^+ G(q)        Newton's method; integration leaves little to do
v <- v - M^-1 A^T W^+ (A v + dG/dt)          the effect of an impulse of the constraints
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient

from ..dynamics.aba import factorize
from ..dynamics.bodies import inertias
from ..dynamics.kinematics import integrate_q, propagate_poses, propagate_velocities
from ..forest import Forest
from ..joints import JOINTS
from ..model import Model
from ..native.surface import native_jit
from ..state import State
from ..topology import Topology
from .evaluation import by_loop, errors, evaluate_loops, rates
from .forward import couple

ITERATIONS = 2  # of Newton's method; a step of order 4 leaves errors that one iteration brings to rounding
OPEN = {4: 1e-3, 8: 1e-6}  # [m, rad] by the bytes of a number: larger errors are no rounding
LEAP = 3.0  # [rad] no joint is turned by more to close its loops after a step
CLOSER = 0.9  # ratio of errors before and after an iteration, if loops that are far from closed are closing
FAR = 32  # iterations from a state that is far from closed
TURN = 0.5  # [rad] no joint turns by more in one of these: Newton's method would leap from one closed state to another


@jax.jit
def project(model: Model, q: Array, v: Array, t: Array | float) -> tuple[Array, Array]:
    """q (..., nq) and v (..., nv) that satisfy the constraints at the time t (...)."""
    return project_and_check(model, q, v, t)[:2]


def project_and_check(model: Model, q: Array, v: Array, t: Array | float) -> tuple[Array, Array, Array]:
    """Return q and v as `project` does, and whether the constraints stay open (*batch).

    They do if the first iteration does not reduce an error above OPEN (near a state that satisfies the constraints,
    errors are squared), or if an iteration leaps.
    """
    batch = Forest.of(model, q=q, v=v).batch
    t = jnp.broadcast_to(jnp.asarray(t, q.dtype), batch)

    def iteration(_: int, now: tuple[Array, ...]) -> tuple[Array, ...]:
        q, v, error, _before, leap = now
        dq, dv, off = corrections(model, q, v, t)
        leap = jnp.maximum(leap, _most_turned(model.topology, dq))
        return integrate_q(model, q, dq, 1.0), v + dv, off, error, leap

    none = jnp.zeros(batch, q.dtype)
    q, v, error, before, leap = jax.lax.fori_loop(0, ITERATIONS, iteration, (q, v, none, none, none))
    closed = ((error <= OPEN[q.dtype.itemsize]) | (error <= CLOSER * before)) & (leap <= LEAP)
    return q, v, jnp.isfinite(before) & ~closed


def close_loops(model: Model, state: State) -> State:
    """Return the state with all loops closed, its velocities too, moved as little as possible, measured by the masses.

    For a model with other lengths or frames than the state was made for (`model.replace`); otherwise the first step of
    a run closes the loops at one blow. If they cannot be closed, `closed(model, q, v, t).error` of the result is not 0.
    It works under jit and vmap, and has derivatives in both modes.
    """
    if not model.topology.loops:
        return state
    return State(*_close_from_afar(model, state.q, state.v, state.t), state.t)


@native_jit
def _close_from_afar(model: Model, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    return jax.lax.fori_loop(0, FAR, lambda _, now: closer(model, *now, t), (q, v))


@native_jit  # XLA takes ten times as long for a robot
def closer(model: Model, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """Return q and v after one iteration from a state that may be far from closed; it turns no joint by more than TURN,
    so that FAR of them lead to the closed state next to it."""
    dq, dv, _ = corrections(model, q, v, t, far=True)
    share = TURN / jnp.maximum(_most_turned(model.topology, dq), TURN)
    return integrate_q(model, q, dq * share[..., None], 1.0), v + dv


def _most_turned(topology: Topology, dq: Array) -> Array:
    """Return the largest angle (*batch) by which a displacement (*batch, nv) turns a joint [rad]."""
    return jnp.abs(stop_gradient(dq[..., _angles(topology)])).max(-1, initial=0)


@functools.cache
def _angles(topology: Topology) -> np.ndarray:
    """The degrees of freedom that are angles: those of a joint come before its others."""
    each = [3 if joint in ("spherical", "floating") else JOINTS[joint].angles for joint in topology.joints]
    return np.concatenate([start + np.arange(n) for start, n in zip(topology.v_start, each, strict=False)]).astype(int)


@native_jit
def loop_errors(model: Model, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """Return errors and rates (m,) of the loops' rows, in the loops' order, for frames that may be far apart: opposite
    directions have an error, other than in `closed`."""
    forest = Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    loops, order = evaluate_loops(forest, model, poses, far=True), by_loop(model.topology)
    return errors(forest, model, loops, q, t)[order], rates(
        forest, model, loops, propagate_velocities(forest, poses, v), v, t
    )[order]


def corrections(model: Model, q: Array, v: Array, t: Array, far: bool = False) -> tuple[Array, Array, Array]:
    """The displacement and the velocity change (*batch, nv) that remove the errors to first order, and the largest
    error of a coordinate (*batch) [m, rad].

    far: whether frames may be far apart (`Kind.far_rows`).
    """
    forest = Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    loops = evaluate_loops(forest, model, poses, far)
    factors = factorize(forest, model, poses, inertias(forest, model, poses))
    coupling = couple(forest, model, poses, factors, loops)
    off = errors(forest, model, loops, q, t), rates(forest, model, loops, propagate_velocities(forest, poses, v), v, t)
    wrong = coupling.solve(jnp.stack(off, 1))
    largest = stop_gradient(jnp.abs(off[0]).max(0, initial=0))
    return coupling.response(-wrong[:, 0]), coupling.response(-wrong[:, 1]), largest
