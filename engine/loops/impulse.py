"""Inverse inertias of links coupled by loops: M^-1 - Y^T W^+ Y, the response to impulses that keeps the loops closed.

The response breaks no constraint: A v does not change, since A (M^-1 - Y^T W^+ Y) = 0. Trees coupled by loops respond
together; `trees_of` counts them as one.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..dynamics.aba import factorize
from ..dynamics.bodies import inertias
from ..dynamics.kinematics import LinkPoses, propagate_poses
from ..dynamics.trees import inverse_inertias as of_trees
from ..dynamics.trees import to_blocks, trees_of
from ..dynamics.wrenches import velocity_changes as of_wrenches
from ..forest import Forest
from ..model import Model
from ..native.surface import native_jit
from .evaluation import evaluate_loops
from .forward import Dense, couple, exact
from .kkt import Sparse

ROUNDING = 16  # eps: smaller entries of the restricted M^-1 count as rounding errors, relative to the tree's alone


def inverse_inertias(forest: Forest, model: Model, poses: list[LinkPoses]) -> Array:
    """M^-1 of every tree, (n, w, w, *batch), restricted to the motions that its loops allow."""
    blocks = of_trees(forest, model, poses)
    if not exact(forest.topology):
        return blocks
    coupling, trees = _coupling(forest, model, poses), trees_of(forest.topology)
    A, Y = coupling.A, coupling.columns
    Y, WY, A = (to_blocks(trees, jnp.moveaxis(x, 1, -1))[:-1] for x in (Y, coupling.solve(Y), A))
    free = blocks - (Y[:, :, None] * WY[:, None]).sum(3)
    # a second time, for what is left of A M^-1: rounding
    rest = jnp.moveaxis((A[:, :, None] * free[:, :, :, None]).sum(1), 2, 0)
    W_rest = coupling.solve(rest.reshape(len(rest), -1, *rest.shape[3:])).reshape(rest.shape)
    free = free - (Y[:, :, None] * jnp.moveaxis(W_rest, 0, 2)[:, None]).sum(3)
    size = stop_gradient(jnp.stack([jnp.sqrt(jnp.abs(blocks[:, k, k])) for k in range(trees.w)], 1))
    rounding = ROUNDING * jnp.finfo(free.dtype).eps * size[:, :, None] * size[:, None]
    return jnp.where(jnp.abs(free) <= rounding, 0, free)  # what loops hold in place does not move at all


@native_jit
def velocity_changes(model: Model, q: Array, wrenches: Array) -> Array:
    """Change of the joint velocities (..., nv) when all links are struck at once and loops hold.

    q: (..., nq).  wrenches: (..., nl, 6) moment about the link's origin [N m s] and impulse [N s], world axes.
    """
    return project_velocity_changes(model, q, of_wrenches(model, q, wrenches))


def project_velocity_changes(model: Model, q: Array, dv: Array) -> Array:
    """Project velocity changes (..., nv) onto the motions that the loops allow."""
    if not exact(model.topology):
        return dv
    forest = Forest.of(model, q=q, v=dv)
    coupling = _coupling(forest, model, propagate_poses(forest, model, q))
    return dv - coupling.response(coupling.solve(coupling.along(dv)[:, None])[:, 0])


def _coupling(forest: Forest, model: Model, poses: list[LinkPoses]) -> Dense | Sparse:
    factors = factorize(forest, model, poses, inertias(forest, model, poses))
    return couple(forest, model, poses, factors, evaluate_loops(forest, model, poses))
