"""Lanes run some at a time: what a tick touches stays in the cache, and no lane waits for more than its tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..engine.algebra.fence import available
from ..engine.model import Model
from ..engine.state import State

TILE = 64  # lanes


def in_tiles(run: Callable[..., Any], model: Model, state: State, rows: Array | None) -> Any:
    """run(model, state, rows) of all lanes, on a CPU tile by tile; every result has its lanes first.

    rows: (frames, nv) or (frames, lanes, nv).
    """
    lanes = state.t.shape[0] if state.t.ndim else 1
    if not state.t.ndim or lanes <= TILE or not available():
        return run(model, state, rows)
    count = -(-lanes // TILE)

    def cut(x: Array, axis: int) -> Array:
        pad = [(0, 0)] * x.ndim
        pad[axis] = (0, count * TILE - lanes)
        x = jnp.moveaxis(jnp.pad(x, pad, mode="edge"), axis, 0)
        return jnp.moveaxis(x.reshape(count, TILE, *x.shape[1:]), 1, axis + 1)

    batched = {name: x for name, x in vars(model).items() if name != "topology" and x.ndim > Model.base_ndim(name)}
    own = rows if rows is not None and rows.ndim == 3 else None
    cuts = {name: cut(x, 0) for name, x in batched.items() if x.shape[0] == lanes}
    inputs = (cuts, jax.tree.map(lambda x: cut(x, 0), state), None if own is None else cut(own, 1))

    def one(inputs: Any) -> Any:
        cuts, state, own = inputs
        ran = run(model.replace(**cuts), state, rows if own is None else own)
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (TILE, *x.shape)) if not x.ndim else x, ran)

    ran = jax.lax.map(one, inputs)
    return jax.tree.map(lambda x: x.reshape(count * TILE, *x.shape[2:])[:lanes], ran)
