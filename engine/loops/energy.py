"""Energy of the whole scene: links, joint springs and loops."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..algebra.fence import fence
from ..dynamics.energy import Energy
from ..dynamics.energy import energy as of_tree
from ..dynamics.kinematics import propagate_poses
from ..forest import Forest
from ..model import Model
from ..native.surface import lanewise
from ..state import State
from .active_forces import beyond, coefficients, penalty_rows
from .evaluation import activity, evaluate_loops, groups_of, numbers


def energy(model: Model, state: State) -> Energy:
    """Kinetic and potential energy. Weights have zero potential at the world's origin.

    Loops store the energy of their springs, limits and constant forces (also of the motors of maximal coordinates).
    Loops held by penalty also store its function (7) of Mikhaylyuk & Strashnov (2013), alpha G^2/2.
    """
    if not model.topology.loops:
        return of_tree(model, state)
    return _with_loops(model, state.q, state.v, jnp.asarray(state.t, state.q.dtype)[..., None])


@lanewise
def _with_loops(model: Model, q: Array, v: Array, t: Array) -> Energy:
    state = State(q, v, t[..., 0])
    alone = of_tree(model, state)
    return Energy(alone.kinetic, alone.potential + _loop_energy(model, state))


def _loop_energy(model: Model, state: State) -> Array:
    forest = Forest.of(model, q=state.q, v=state.v)
    t = jnp.broadcast_to(jnp.asarray(state.t, state.q.dtype), forest.batch)
    total = jnp.zeros(forest.batch, forest.dtype)
    loop_rows_by_kind = evaluate_loops(forest, model, propagate_poses(forest, model, state.q))
    for group, loop_rows in zip(groups_of(forest.topology), loop_rows_by_kind, strict=True):
        if any(forest.topology.loops[k].acts for k in group.loops):
            spring, ends = (numbers(forest, x, 3, group.loops) for x in (model.loop_spring, model.loop_limits))
            for k, row in enumerate(loop_rows.coordinates):
                alpha = coefficients(forest, model, group, row)[0]
                stored = _penalty_energy(row.error, spring[..., k, :], ends[..., k, :], alpha)
                active = activity(forest, model, group)
                total = total + (stored if active is None else stored * active).sum(0)
        for row, off, _ in penalty_rows(forest, model, group, loop_rows, t):
            total = total + (coefficients(forest, model, group, row)[0] * off * off).sum(0) / 2
    return total


@fence
def _penalty_energy(x, spring, ends, alpha):
    stiffness, rest, _, force = (spring[..., k] for k in range(4))
    stretch, chi = x - rest, beyond(x, ends)
    return (stiffness * stretch * stretch + alpha * chi * chi) / 2 - force * x
