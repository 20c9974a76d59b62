"""Inverse inertias of links that loops tie: M^-1 - Y^T W^+ Y, the response to impulses that keeps the loops closed.

The response breaks no constraint: A v stays as it is, since A (M^-1 - Y^T W^+ Y) = 0. Trees tied by loops respond
together; `trees_of` counts them as one.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..dynamics.aba import factorize
from ..dynamics.bodies import inertias
from ..dynamics.kinematics import Placed, place
from ..dynamics.trees import inverse_inertias as of_trees
from ..dynamics.trees import to_blocks, trees_of
from ..dynamics.wrenches import velocity_changes as of_wrenches
from ..forest import Forest
from ..loops.measured import standing
from ..maximal.kkt import Sparse
from ..model import Model
from ..native.surface import compiled
from .forward import Dense, couple, exact


def inverse_inertias(forest: Forest, model: Model, placed: list[Placed]) -> Array:
    """M^-1 of every tree, (n, w, w, *batch), restricted to the motions that its loops allow."""
    blocks = of_trees(forest, model, placed)
    if not exact(forest.topology):
        return blocks
    coupling = _coupling(forest, model, placed)
    Y = coupling.columns
    Y, held = (to_blocks(trees_of(forest.topology), jnp.moveaxis(x, 1, -1))[:-1] for x in (Y, coupling.solve(Y)))
    return blocks - (Y[:, :, None] * held[:, None]).sum(3)


@compiled
def velocity_changes(model: Model, q: Array, wrenches: Array) -> Array:
    """Change of the joint velocities (..., nv) when all links are struck at once and loops hold.

    q: (..., nq).  wrenches: (..., nl, 6) moment about the link's origin [N m s] and impulse [N s], world axes.
    """
    return held(model, q, of_wrenches(model, q, wrenches))


def held(model: Model, q: Array, dv: Array) -> Array:
    """Project velocity changes (..., nv) on the motions that the loops allow."""
    if not exact(model.topology):
        return dv
    forest = Forest.of(model, q=q, v=dv)
    coupling = _coupling(forest, model, place(forest, model, q))
    return dv - coupling.answer(coupling.solve(coupling.along(dv)[:, None])[:, 0])


def _coupling(forest: Forest, model: Model, placed: list[Placed]) -> Dense | Sparse:
    factors = factorize(forest, model, placed, inertias(forest, model, placed))
    return couple(forest, model, placed, factors, standing(forest, model, placed))
