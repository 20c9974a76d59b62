"""Read and write blocks of arrays in place, at indices that are known only at run time."""

from __future__ import annotations

from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import dynamic_slice, dynamic_update_slice, fori_loop

T = TypeVar("T")


def block(x: Array, *at: Array) -> Array:
    """Return x[at]; indices must be in range."""
    sizes = (1,) * len(at) + x.shape[len(at) :]
    return dynamic_slice(x, _corner(x, at), sizes, allow_negative_indices=False).reshape(sizes[len(at) :])


def put(x: Array, value: Array, *at: Array) -> Array:
    """Return x with x[at] replaced; indices must be in range."""
    return dynamic_update_slice(x, value[(None,) * len(at)], _corner(x, at), allow_negative_indices=False)


def indices_of(there: Array) -> tuple[Array, Array]:
    """Return the indices of the true entries of a mask (n,), in order, and their number."""

    def one(c: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        which, count = carry
        return put(which, c.astype(jnp.int32), count), count + block(there, c)

    last = jnp.where(there, jnp.arange(1, len(there) + 1, dtype=jnp.int32), 0).max()
    return fori_loop(jnp.int32(0), last, one, (jnp.zeros(len(there), jnp.int32), jnp.int32(0)))


def scatter(all: T, some: T, which: Array, count: Array) -> T:
    """Return arrays `all` with the first `count` rows of `some` written to rows `which`."""
    one = lambda k, all: jax.tree.map(lambda x, y: put(x, block(y, k), block(which, k)), all, some)  # noqa: E731
    return fori_loop(0, count, one, all)


def _corner(x: Array, at: tuple[Array, ...]) -> list[Array]:
    return [jnp.asarray(k, jnp.int32) for k in (*at, *(0,) * (x.ndim - len(at)))]
