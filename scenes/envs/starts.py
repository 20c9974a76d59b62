"""Random numbers for the beginnings of episodes."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array


def split(key: Array) -> Array:
    """Split each key in two, (...) -> (..., 2)."""
    return _over_lanes(jax.random.split, key)


def uniform(key: Array, *bounds: float) -> Array:
    """Draw numbers within +-bounds, (...) -> (..., len(bounds))."""
    drawn = _over_lanes(lambda key: jax.random.uniform(key, (len(bounds),), minval=-1, maxval=1), key)
    return drawn * jnp.array(bounds)


def _over_lanes(draw: Callable[[Array], Array], key: Array) -> Array:
    for _ in key.shape:
        draw = jax.vmap(draw)
    return draw(key)
