"""A large batch in tiles: the intermediate values of a lane are kilobytes, and those of a few hundred lanes fit in a
core's cache. It is a sixth to a third faster on a CPU, with no gain on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from ...algebra.fence import lane_programs
from ...forest import Forest
from ...model import Model

T = TypeVar("T")
SIZE = 2048  # lanes times degrees of freedom of a tile


def in_tiles(function: Callable[..., T], model: Model, *arrays: Array) -> T:
    """Compute function(model, *arrays), all arrays (lanes, ...), a tile at a time if there are several."""
    nv = model.topology.nv
    lanes = arrays[0].shape[0] if arrays[0].ndim > 1 else 0
    tile = 1 << max(4, (SIZE // max(nv, 1)).bit_length() - 1)
    alike = all(x.ndim == 2 and x.shape[0] == lanes for x in arrays) and lanes > 2 * tile
    if not (lane_programs() and alike) or Forest.of(model, q=arrays[0][0]).batch:
        return function(model, *arrays)
    whole = lanes - lanes % tile
    pieces = [x[:whole].reshape(-1, tile, x.shape[1]) for x in arrays]
    tiled = jax.lax.map(lambda piece: function(model, *piece), pieces)
    tiled = jax.tree.map(lambda x: x.reshape(whole, *x.shape[2:]), tiled)
    if whole == lanes:
        return tiled
    rest = function(model, *(x[whole:] for x in arrays))
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y]), tiled, rest)
