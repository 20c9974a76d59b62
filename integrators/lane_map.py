"""Run lanes one by one on a CPU core, side by side elsewhere.

A core gains nothing from lanes side by side here: they would wait for each other at every loop and branch of a tick (an
impact in one lane is computed in all), and a scene's own contacts and links fill its vector units. One by one, each
lane ends when it is done, and is computed exactly like a single scene. On a GPU all lanes run side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from ..engine.model import Model
from ..engine.packed import Packed
from ..engine.state import State
from .motion.forces import Drive

T = TypeVar("T")


def over_lanes(run: Callable[..., T], model: Packed | Model, state: State, rows: Drive, *own: Any) -> T:
    """Call run(model, state, rows, *own) for one scene or for every lane; every result has its lanes first.

    rows: motor commands and forces, (frames, nv) or (frames, lanes, nv).
    own: other arrays of the lanes, lanes first, and numbers () that all share.
    """
    if not state.t.ndim:
        return run(model, state, rows, *own)
    arrays, tree = jax.tree.flatten((model, state, rows, *own))
    axes = jax.tree.leaves((*lane_axes(model, state, rows), jax.tree.map(lambda x: 0 if jnp.ndim(x) else -1, own)))

    def one(arrays: list[Array]) -> T:
        return run(*jax.tree.unflatten(tree, arrays))

    return jax.vmap(one, in_axes=([None if axis < 0 else axis for axis in axes],))(arrays)


def lane_axes(model: Packed | Model, state: State, rows: Drive) -> tuple[Any, Any, Any]:
    """Return the axis of the lanes for each of these arrays; -1 if all lanes share it."""
    lanes = state.t.shape[0]
    if isinstance(model, Packed):
        parameters: Any = jax.tree.map(lambda x: 0 if x.ndim > 1 and x.shape[0] == lanes else -1, model)
    else:
        own = {name: x.ndim > Model.base_ndim(name) and x.shape[0] == lanes for name, x in model.parameters.items()}
        parameters = replace(model, **{name: 0 if yes else -1 for name, yes in own.items()})
    return parameters, jax.tree.map(lambda _: 0, state), jax.tree.map(lambda x: 1 if x.ndim == 3 else -1, rows)
