"""Lanes one by one where a core runs them, side by side elsewhere.

A core gains nothing from lanes side by side here: they would wait for each other at every loop and branch of
a tick (what bounces in one lane is skipped in none), and a scene's own contacts and links fill its vector units. One
by one, each ends when it is done, and is computed exactly as a single scene is. On a GPU all lanes run side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from ..engine.algebra.fence import lane_programs
from ..engine.model import Model
from ..engine.packed import Packed
from ..engine.state import State
from .motion.forces import Drive


def over_lanes(run: Callable[..., Any], model: Packed | Model, state: State, rows: Drive, *own: Any) -> Any:
    """run(model, state, rows, *own) of one scene or of every lane; every result has its lanes first.

    rows: of motors and forces, (frames, nv) or (frames, lanes, nv).  own: what else every lane has its own of, lanes
    first, and numbers () that all share.
    """
    if not state.t.ndim:
        return run(model, state, rows, *own)
    arrays, tree = jax.tree.flatten((model, state, rows, *own))
    axes = jax.tree.leaves((*lane_axes(model, state, rows), jax.tree.map(lambda x: 0 if jnp.ndim(x) else -1, own)))

    def one(arrays: Any) -> Any:
        return run(*jax.tree.unflatten(tree, arrays))

    return jax.vmap(one, in_axes=([None if axis < 0 else axis for axis in axes],))(arrays)


def one_by_one(run: Callable[..., Any], model: Model, state: State, rows: Drive) -> Any:
    """`over_lanes` where run is no program of its own, but part of XLA's."""
    if not state.t.ndim or not lane_programs():
        return run(model, state, rows)
    arrays, tree = jax.tree.flatten((model, state, rows))
    axes = jax.tree.leaves(lane_axes(model, state, rows))

    def one(own: Any) -> Any:
        mine = iter(own)
        lane = [x if axis < 0 else next(mine) for x, axis in zip(arrays, axes, strict=True)]
        return run(*jax.tree.unflatten(tree, lane))

    return jax.lax.map(one, [jnp.moveaxis(x, axis, 0) for x, axis in zip(arrays, axes, strict=True) if axis >= 0])


def lane_axes(model: Packed | Model, state: State, rows: Drive) -> tuple[Any, Any, Any]:
    """For each array of these, the axis that its lanes are along; -1 where all lanes share it."""
    lanes = state.t.shape[0]
    if isinstance(model, Packed):
        parameters: Any = jax.tree.map(lambda x: 0 if x.ndim > 1 and x.shape[0] == lanes else -1, model)
    else:
        own = {name: x.ndim > Model.base_ndim(name) and x.shape[0] == lanes for name, x in model.parameters.items()}
        parameters = replace(model, **{name: 0 if yes else -1 for name, yes in own.items()})
    return parameters, jax.tree.map(lambda _: 0, state), jax.tree.map(lambda x: 1 if x.ndim == 3 else -1, rows)
