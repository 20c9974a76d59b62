"""Sparse linear equations between trees, with no block for most pairs of trees.

    sum_j H_ij x_j = r_i    for T trees; H_ij is (w, w)

Gaussian elimination runs over trees, on the nonzero blocks only. The tree with the fewest remaining neighbours is next
(minimum degree: Tinney and Walker 1967). So a stack or a row of T bodies takes T steps, not T^3, and islands cost as
much as each alone. Unknowns inside a block are pivoted: H is M^-1 times a matrix that needs pivoting only if friction
alone can press.

Blocks are stored one after the other, one for each coupled pair, including fill-in. A table of T^2 integers holds their
positions; there is room for `pairs_room` pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import cond, dynamic_index_in_dim, fori_loop, while_loop

from . import gauss
from .blocks import block, put

FILL = 64  # pairs for each tree; 1000 balls in the densest packing have 56


class EliminationOrder(NamedTuple):
    """The order of elimination of the trees that contacts couple.

    order: (T,) these trees in order, the first `count` ().
    count: () number of trees.
    slot: (T + 1, T + 1) position of the block of two trees, -1 if it is zero: the T diagonal blocks first, then both
        blocks of each pair.
    first: (T + 1,) position in `later` at which the neighbours of the k-th tree begin.
    later: neighbours of each tree that are eliminated after it.
    fits: () bool, whether there was room for all pairs.
    """

    order: Array
    count: Array
    slot: Array
    first: Array
    later: Array
    fits: Array


def pairs_room(trees: int) -> int:
    """Return the number of pairs of trees that an elimination has room for."""
    return max(1, min(trees * (trees - 1) // 2, FILL * trees))


class _Graph(NamedTuple):
    """The graph of coupled trees.

    slot: as in `EliminationOrder`.
    pairs: () number of coupled pairs, including those without room.
    degree: (T,) number of neighbours of each tree that are not eliminated yet.
    """

    slot: Array
    pairs: Array
    degree: Array

    def add_edge(self, a: Array, b: Array) -> _Graph:
        """Return the graph with an edge between a and b."""
        T = len(self.degree)

        def new() -> _Graph:
            at = T + 2 * jnp.minimum(self.pairs, pairs_room(T) - 1)
            slot = put(put(self.slot, at, a, b), at + 1, b, a)
            return _Graph(slot, self.pairs + 1, self.add_degree(a, 1).add_degree(b, 1).degree)

        return cond((a != b) & (block(self.slot, a, b) < 0), new, lambda: self)

    def add_degree(self, i: Array, more: int) -> _Graph:
        """Return the graph with the degree of i increased by `more`."""
        return self._replace(degree=put(self.degree, block(self.degree, i) + more, i))


def elimination_order(ends: Array, which: Array, count: Array, trees: int) -> EliminationOrder:
    """Find the order for the first `count` contacts of `which`.  ends: (C, 2 or 1) trees of all contacts, T: none."""
    T, room = trees, pairs_room(trees)
    graph, left = _graph(ends, which, count, T)
    nodes = left.sum(dtype=jnp.int32)

    def eliminate(
        k: Array, carry: tuple[_Graph, Array, Array, Array, Array]
    ) -> tuple[_Graph, Array, Array, Array, Array]:
        graph, left, order, first, later = carry
        i = jnp.argmin(jnp.where(left, graph.degree, 2 * T)).astype(jnp.int32)
        left, begin = put(left, jnp.array(False), i), block(first, k)

        def append_neighbour(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            todo, later, end = state
            j = jnp.argmax(todo).astype(jnp.int32)
            return put(todo, jnp.array(False), j), put(later, j, jnp.minimum(end, room - 1)), end + 1

        neighbours = left & (block(graph.slot, i)[:T] >= 0)
        _, later, end = while_loop(lambda s: s[0].any(), append_neighbour, (neighbours, later, begin))
        end = jnp.minimum(end, room)
        m = end - begin

        def leave(n: Array, graph: _Graph) -> _Graph:
            return graph.add_degree(block(later, begin + n), -1)

        def fill(n: Array, graph: _Graph) -> _Graph:
            """Couple the neighbours of i with each other (fill-in)."""
            a, b = block(later, begin + n // m), block(later, begin + n % m)
            return cond(n // m < n % m, lambda: graph.add_edge(a, b), lambda: graph)

        graph = fori_loop(0, m * m, fill, fori_loop(0, m, leave, graph))
        return graph, left, put(order, i, k), put(first, end, k + 1), later

    none = jnp.zeros(T, jnp.int32)
    start = (graph, left, none, jnp.zeros(T + 1, jnp.int32), jnp.zeros(room, jnp.int32))
    graph, _, order, first, later = fori_loop(0, nodes, eliminate, start)
    return EliminationOrder(order, nodes, graph.slot, first, later, graph.pairs <= room)


def _graph(ends: Array, which: Array, count: Array, T: int) -> tuple[_Graph, Array]:
    """Return the graph of the trees that contacts couple, and whether each tree (T,) has contacts."""
    indices = jnp.arange(T + 1, dtype=jnp.int32)

    def meet(k: Array, carry: tuple[_Graph, Array]) -> tuple[_Graph, Array]:
        graph, touched = carry
        own = block(ends, block(which, k))
        if len(own) == 1:
            return graph, put(touched, jnp.array(True), own[0])
        a, b = own
        graph = cond((a < T) & (b < T), lambda: graph.add_edge(a, b), lambda: graph)
        return graph, put(put(touched, jnp.array(True), a), jnp.array(True), b)

    slot = jnp.where((indices[:, None] == indices) & (indices < T), indices, -1)
    start = _Graph(slot, jnp.int32(0), jnp.zeros(T, jnp.int32)), jnp.zeros(T + 1, bool)
    graph, touched = fori_loop(0, count, meet, start)
    return graph, touched[:T]


def solve(elimination: EliminationOrder, H: Array, r: Array) -> Array:
    """Return x (T + 1, w), 0 for trees without contacts.

    H: (., w, w) blocks at their slots, each transposed.  r: (T + 1, w) right side.
    """
    if len(elimination.order) == 1:
        x = gauss.solve(jnp.concatenate([H[0].T, r[0][:, None]], 1), jnp.int32(r.shape[1]))
        return jnp.zeros_like(r).at[0].set(jnp.where(elimination.count > 0, x, 0))

    def parts(k: Array) -> tuple[Array, Array, Array]:
        """Return the k-th tree, and the positions at which its later neighbours begin and end."""
        return (
            block(elimination.order, k),
            block(elimination.first, k),
            block(elimination.first, k + 1),
        )

    def eliminate(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        i, begin, end = parts(k)
        inverse = _inverse(block(carry[0], i))

        def scale(a: Array, H: Array) -> Array:
            at = block(elimination.slot, i, block(elimination.later, a))
            return put(H, block(H, at) @ inverse, at)

        H, r = carry
        H, r = fori_loop(begin, end, scale, H), put(r, block(r, i) @ inverse, i)

        def clear(a: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            H, r = carry
            other = block(elimination.later, a)
            factor = block(H, block(elimination.slot, other, i))

            def one(b: Array, H: Array) -> Array:
                j = block(elimination.later, b)
                at = block(elimination.slot, other, j)
                return put(H, block(H, at) - block(H, block(elimination.slot, i, j)) @ factor, at)

            return fori_loop(begin, end, one, H), put(r, block(r, other) - block(r, i) @ factor, other)

        return fori_loop(begin, end, clear, (H, r))

    H, r = fori_loop(0, elimination.count, eliminate, (H, r))

    def substitute(back: Array, x: Array) -> Array:
        i, begin, end = parts(elimination.count - 1 - back)

        def take(a: Array, own: Array) -> Array:
            j = block(elimination.later, a)
            return own - block(x, j) @ block(H, block(elimination.slot, i, j))

        return put(x, fori_loop(begin, end, take, block(r, i)), i)

    return fori_loop(0, elimination.count, substitute, jnp.zeros_like(r))


def transpose(elimination: EliminationOrder, H: Array) -> Array:
    """Return the blocks of the transposed matrix."""
    T, at = len(elimination.order), np.arange(len(H))
    other = np.where(at < T, at, T + ((at - T) ^ 1))
    return jnp.swapaxes(H[other], 1, 2)


def _inverse(A: Array) -> Array:
    """Invert A (w, w) by exchanging unknowns and right sides one by one (Gauss and Jordan).

    y = A x. Step k eliminates the x_j with the largest entry left in row k: then row k is that of x_j, column j of y_k.
    """
    w = len(A)
    indices = jnp.arange(w, dtype=jnp.int32)

    def exchange(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        A, left, chosen = carry
        row = block(A, k)
        j = jnp.argmax(jnp.where(left, jnp.abs(row), -1)).astype(jnp.int32)
        column, here, out = dynamic_index_in_dim(A, j, 1, False), indices == j, indices == k
        scale = 1 / row[j]
        row = jnp.where(here, -1, row) * scale
        # row k of A counts as 0, and so does column j
        rest = jnp.where(out[:, None] | here, 0, A)
        return rest - jnp.where(out, 1, column)[:, None] * row, left & ~here, put(chosen, j, k)

    A, _, chosen = fori_loop(0, w, exchange, (A, indices >= 0, jnp.zeros(w, jnp.int32)))

    def sort(k: Array, B: Array) -> Array:
        return put(B, block(A, k)[chosen], block(chosen, k))

    return fori_loop(0, w, sort, A)
