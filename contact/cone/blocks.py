"""Parts of arrays at numbers that a program works out, read and written in place."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.lax import dynamic_slice, dynamic_update_slice


def block(x: Array, *at: Array) -> Array:
    """x[at], for numbers that are in range."""
    sizes = (1,) * len(at) + x.shape[len(at) :]
    return dynamic_slice(x, _corner(x, at), sizes).reshape(sizes[len(at) :])


def put(x: Array, value: Array, *at: Array) -> Array:
    """x with x[at] replaced."""
    return dynamic_update_slice(x, value[(None,) * len(at)], _corner(x, at))


def _corner(x: Array, at: tuple[Array, ...]) -> list[Array]:
    return [jnp.asarray(k, jnp.int32) for k in (*at, *(0,) * (x.ndim - len(at)))]
