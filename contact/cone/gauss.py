"""Gaussian elimination of a small system, in the order of its rows, with column pivoting.

Each row eliminates the unknown with its largest entry. This is as stable as row pivoting, which it is for the
transposed matrix, and needs no swaps: a row is read, divided and subtracted from others as a whole. The scale of a row
does not matter.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.lax import fori_loop

from .blocks import block, put


def solve(A: Array, count: Array) -> Array:
    """Solve the first `count` equations for x (N,); unknowns that are not pivots are 0.

    A: (N, N + 1), the right side last.
    """
    N = len(A)
    indices = jnp.arange(N + 1, dtype=jnp.int32)

    def eliminate(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        A, left, chosen = carry
        row = block(A, k)
        size = jnp.where(left, jnp.abs(row), -1)
        j = jnp.where(size == size.max(), indices, N).min()
        row = row * (1 / row[j])

        def clear(i: Array, A: Array) -> Array:
            return put(A, block(A, i) - block(A, i, j) * row, i)

        A = fori_loop(k + 1, count, clear, put(A, row, k))
        return A, left & (indices != j), put(chosen, j, k)

    def substitute(back: Array, x: Array) -> Array:
        k = count - 1 - back
        row = block(A, k)
        return put(x, row[N] - (row[:N] * x).sum(), block(chosen, k))

    none = jnp.zeros(N, jnp.int32)
    A, _, chosen = fori_loop(0, count, eliminate, (A, indices < N, none))
    return fori_loop(0, count, substitute, jnp.zeros(N, A.dtype))
