"""What stands still: velocities that are nothing but rounding are none.

The impulses of resting contacts stop a body up to the accuracy of their solver. What is left is some units in the last
places of g h, or what the solver says where it did not come nearer to the law, as in a heap of hundreds of contacts; it
leads nowhere, and it keeps a state from being the same twice. So a tree that contacts carry and whose velocities are
faint at a step's end, below FAINT g h or ERRORS times what the solver left, has none there; if they were as faint at
the start, it stays where it was. A body that starts from rest is not held, unless it is pushed by less than that.

The derivatives are those of the step as it was.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient

from ..engine.dynamics.trees import to_blocks, trees_of
from ..engine.model import Model
from ..engine.state import State

FAINT = {4: 1e-4, 8: 1e-8}  # by the bytes of a number: part of what gravity does in a step
ERRORS = 3.0  # of a contact, a body's velocity may be off by


def zero_faint_velocities(
    model: Model, before: State, h: Array, q: Array, v: Array, spread: Array, left: Array
) -> tuple[Array, Array]:
    """q (*batch, nq), v (*batch, nv) at the end of a step, of what stands still as they should be.

    before: the step's start.  h: how long it is [s], as it goes with numbers of trees (*batch, T + 1).
    spread: (*batch, nv) what contacts did in it [N m s, N s].  left: (*batch) what their solver left [m/s].
    """
    topology, trees = model.topology, trees_of(model.topology)
    tree = trees.of_link[:-1]
    dof, coordinate = (np.repeat(tree, np.diff(start)) for start in (topology.v_start, topology.q_start))
    limit = h * FAINT[v.dtype.itemsize] * jnp.linalg.norm(model.gravity, axis=-1)[..., None]
    limit = jnp.maximum(limit, ERRORS * left[..., None])

    def largest(x: Array) -> Array:
        """(*batch, T + 1) of each tree."""
        return jnp.moveaxis(to_blocks(trees, jnp.abs(x)).max(1, initial=0), 0, -1)

    ends = (largest(spread) > 0) & (largest(v) < limit)
    stays = ends & (largest(before.v) < limit)
    ends, stays = stop_gradient((ends, stays))
    v = jnp.where(ends[..., dof], v - stop_gradient(v), v)
    q = jnp.where(stays[..., coordinate], stop_gradient(before.q) + (q - stop_gradient(q)), q)
    return q, v
