"""Compaction: move the true rows of a mask to the front, and loop over these alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from .algebra.bounded import map_first
from .algebra.fence import lane_programs

G = TypeVar("G")
R = TypeVar("R")
T = TypeVar("T")

VECTOR = 64  # bytes of the numbers that are read at a time
WORD = 32  # bits


def compact(mask: Array, room: int) -> tuple[Array, Array]:
    """Return the indices of the true rows of mask (n, *batch), in order, (room, *batch), and whether each is real.

    It takes one pass if each lane has a program of its own, else a binary search in the running count. It does not
    sort: a loop around a sort would not compile to one function.
    """
    if lane_programs() and mask.size == len(mask):
        flat = mask.reshape(-1)
        rows, count = set_bits(pack(flat), room)
        rows, real = jnp.minimum(rows, len(flat) - 1), jnp.arange(room, dtype=jnp.int32) < count
        return rows.reshape(room, *mask.shape[1:]), real.reshape(room, *mask.shape[1:])
    count = jnp.cumsum(mask, 0, dtype=jnp.int32).reshape(len(mask), -1)
    wanted = jnp.arange(1, room + 1, dtype=jnp.int32)
    search = jax.vmap(lambda x: jnp.searchsorted(x, wanted, method="scan_unrolled"), 1, 1)
    rows = jnp.minimum(search(count), len(mask) - 1).astype(jnp.int32)
    real = wanted[:, None] <= count[-1]
    return rows.reshape(room, *mask.shape[1:]), real.reshape(room, *mask.shape[1:])


def set_bits(words: Array, room: int) -> tuple[Array, Array]:
    """Return the indices of the first set bits in words (n,) uint32, in order, (room,), and the count of all set bits
    (). It goes word by word, and within a word from one set bit to the next."""

    def bits(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        def put(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            word, rows, count = carry
            below = (word & (~word + 1)) - 1
            here = WORD * k + jax.lax.population_count(below).astype(jnp.int32)
            rows = jax.lax.dynamic_update_index_in_dim(rows, here, jnp.minimum(count, room), 0)
            return word & ~(below + 1), rows, count + 1

        word = jax.lax.dynamic_index_in_dim(words, k, 0, keepdims=False)
        return jax.lax.while_loop(lambda carry: carry[0] != 0, put, (word, *carry))[1:]

    # one row more than there is room for: it takes the excess
    start = jnp.full(room + 1, WORD * len(words) - 1, jnp.int32), jnp.int32(0)
    rows, count = jax.lax.fori_loop(jnp.int32(0), jnp.int32(len(words)), bits, start)
    return rows[:room], count


def pack(mask: Array) -> Array:
    """Pack a mask (n,) into (words,) uint32: bit k of word w is entry 32 w + k."""
    bits = jnp.pad(mask, (0, -len(mask) % WORD)).reshape(-1, WORD).astype(jnp.uint32)
    return (bits << jnp.arange(WORD, dtype=jnp.uint32)).sum(1, dtype=jnp.uint32)


def map_to_last(f: Callable[[G, T], R], there: Array, given: G, rows: T, few: int = 256) -> R:
    """Compute f(given, rows), with a row of results for each of `rows` (n, ...), up to the last one that is there; then
    zeros. All rows are computed if there are at most `few`. f as in `map_first`.

    there: (n, *batch).
    """
    if len(there) <= few:
        return f(given, rows)
    return map_first(_at_a_time(rows), f, last_row(there), given, rows)


def map_indexed(f: Callable[[G, T, Array], R], order: Array, real: Array, given: G, rows: T) -> R:
    """Compute f(given, chosen rows, whether each is real), with a row of results for each number in `order`, up to
    the last that is real. f as in `map_first`.

    order, real: (m, *batch), as `compact` gives them.  rows: (n, *batch, own axes).
    """

    def some(given: Any, selection: tuple[Array, Array]) -> R:
        (given, rows), (order, real) = given, selection
        index = lambda x: order.reshape(*order.shape, *(1,) * (x.ndim - order.ndim))  # noqa: E731
        return f(given, jax.tree.map(lambda x: jnp.take_along_axis(x, index(x), 0), rows), real)

    return map_first(_at_a_time(rows), some, last_row(real), (given, rows), (order, real))


def in_front(real: Array) -> Array:
    """Return the mask (n, *batch), whose true rows are in front, so that a compiler of lane programs knows this: a
    value that is used only under the mask is not computed behind the last true row."""
    if not lane_programs() or real.size > len(real):
        return real
    return real & (jnp.arange(len(real), dtype=jnp.int32).reshape(real.shape) < last_row(real))


def segment_reduce(how: Callable[[Array, Array], Array], x: Array, index: Array, n: int, neutral: float) -> Array:
    """Combine by `how`, in order, the entries of x (m,) that have the same index: (n,), neutral for an index without
    entries. Entries with other indices are left out."""
    last = last_row(x != neutral)

    def one(k: Array, made: Array) -> Array:
        i = jnp.minimum(index[k], n)
        return jax.lax.dynamic_update_index_in_dim(made, how(made[i], x[k]), i, 0)

    return jax.lax.fori_loop(jnp.int32(0), last, one, jnp.full(n + 1, neutral, x.dtype))[:n]


def last_row(there: Array) -> Array:
    """Number of rows up to the last one that is there, in any lane."""
    number = jnp.arange(1, len(there) + 1, dtype=jnp.int32).reshape(-1, *(1,) * (there.ndim - 1))
    return jnp.where(there, number, 0).max()


def _at_a_time(rows: Any) -> int:
    return VECTOR // max(x.dtype.itemsize for x in jax.tree.leaves(rows))
