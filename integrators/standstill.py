"""Standstill: velocities that are only rounding error are set to 0.

The impulses of resting contacts stop a body up to the accuracy of their solver. The remaining velocity is some units in
the last place of g h, or the residual of the solver, as in a heap of hundreds of contacts. It has no physical meaning,
and it keeps a state from repeating itself. So the velocities of a tree that contacts carry become 0 if, at the end of a
step, they are below FAINT g h, or below ERRORS times the residual and the rest speed. If they were as small at its
start, the tree also keeps its position. A body that starts to move is not held, unless it is pushed by less than that.

Derivatives are those of the step without this.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient

from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.loops.forward import exact as exactly_held
from ..engine.loops.projection import OPEN
from ..engine.model import Model
from ..engine.state import State

FAINT = {4: 1e-4, 8: 1e-8}  # by bytes per number: part of g h, the velocity that gravity adds in a step
ERRORS = 3.0  # residuals of the contact solver: error of a body's velocity


def zero_faint_velocities(
    model: Model, before: State, h: Array, q: Array, v: Array, spread: Array, left: Array
) -> tuple[Array, Array]:
    """Return q (*batch, nq) and v (*batch, nv) at the end of a step, without motion of trees that stand still.

    before: the state at its start.
    h: (*batch, T + 1) length of the step of each tree and the world, or (*batch, 1) [s].
    spread: (*batch, nv) joint impulses of contacts in it [N m s, N s].
    left: (*batch) residual of the contact solver [m/s].
    """
    topology, trees = model.topology, trees_of(model.topology)
    tree = trees.of_link[:-1]
    dof, coordinate = (np.repeat(tree, np.diff(start)) for start in (topology.v_start, topology.q_start))
    limit = h * FAINT[v.dtype.itemsize] * jnp.linalg.norm(model.gravity, axis=-1)[..., None]
    rest_speed = jnp.asarray(model.rest_speed)[..., None]
    limit = jnp.maximum(limit, jnp.minimum(ERRORS * left[..., None], rest_speed))

    def largest(x: Array) -> Array:
        """Return the largest entry of each tree and of the world, (*batch, T + 1)."""
        return jnp.moveaxis(to_blocks(trees, jnp.abs(x)).max(1, initial=0), 0, -1)

    ends = (largest(spread) > 0) & (largest(v) < limit)
    stays = ends & (largest(before.v) < limit)
    if exactly_held(topology):  # loops that were open are closed by a shift without a velocity
        moved = (jnp.abs(q - before.q) > OPEN[q.dtype.itemsize])[..., None]
        stays = stays & ~(moved & (coordinate[:, None] == np.arange(trees.n + 1))).any(-2)
    ends, stays = stop_gradient((ends, stays))
    v = jnp.where(ends[..., dof], v - stop_gradient(v), v)
    q = jnp.where(stays[..., coordinate], stop_gradient(before.q) + (q - stop_gradient(q)), q)
    return q, v
