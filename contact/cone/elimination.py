"""Linear equations between trees, block by block, where blocks are missing for most pairs of trees.

    sum_j H_ij x_j = r_i    for T trees; H_ij is (w, w, *batch)

Gauss's elimination over trees: those with the fewest neighbours first, touching only blocks that are there. So a
stack or a row of T bodies costs T steps, not T^3. Which blocks are there is the union over lanes. Inside a block rows
are pivoted: H is M^-1 times a matrix that would need none.

The world has the last number, T. It is coupled to nobody, so its column is where r is kept, in the first column of
each block: one array is all that a loop changes, and XLA does not copy it, as it would with r beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.lax import dynamic_index_in_dim, dynamic_slice, dynamic_update_slice, fori_loop

from ...engine.algebra.fence import fence, settled


class Plan(NamedTuple):
    """T trees in the order of their elimination.

    rank: (T + 1,) place of each tree in the order; the world stays T.  tree: (T + 1,) the tree at each place.
    links: (T, T + 1) per place the later places coupled to it, then T: the first `count` + 1 of a row.
    """

    rank: Array
    tree: Array
    links: Array
    count: Array


def plan(coupled: Array) -> Plan:
    """The order for trees of which `coupled` (T, T) bool says who meets whom: symmetric, whatever its diagonal."""
    n = len(coupled)
    k = jnp.arange(n, dtype=jnp.int32)
    coupled = coupled & (k[:, None] != k)
    degree = coupled.sum(1)
    before = (degree < degree[:, None]) | ((degree == degree[:, None]) & (k < k[:, None]))
    rank = before.sum(1, dtype=jnp.int32)
    place = rank == k[:, None]  # (place, tree)
    tree = jnp.where(place, k, 0).sum(1, dtype=jnp.int32)
    there = (place[:, :, None] & coupled[None]).any(1)
    there = (there[:, None] & place[None]).any(2)  # by places

    def fill(i: Array, there: Array) -> Array:
        later = dynamic_index_in_dim(there, i, 0, False) & (k > i)
        return there | (later[:, None] & later)

    there = fori_loop(0, n, fill, there) & (k > k[:, None])
    position = jnp.cumsum(there, 1)

    def listed(i: Array, links: Array) -> Array:
        here, at = (dynamic_index_in_dim(x, i, 0, False) for x in (there, position))
        row = jnp.where(here & (at == k[:, None] + 1), k - n, 0).sum(1, dtype=jnp.int32) + n
        return put(links, jnp.append(row, n), i)

    links = fori_loop(0, n, listed, jnp.full((n, n + 1), n, jnp.int32))
    world = jnp.full((1,), n, jnp.int32)
    return Plan(jnp.concatenate([rank, world]), jnp.concatenate([tree, world]), links, there.sum(1, dtype=jnp.int32))


def solve(plan: Plan, H: Array, r: Array) -> Array:
    """x (T + 1, w, *batch) of H (T + 1, T + 1, w, w, *batch) and r (T + 1, w, *batch), all by places of the plan."""
    n = len(plan.count)
    first = jnp.arange(H.shape[3]).reshape(1, -1, *(1,) * (r.ndim - 2)) == 0
    column = lambda k: jnp.where(first, block(r, k)[:, None], 0)  # noqa: E731
    H = fori_loop(0, n, lambda k, H: put(H, column(k), k, jnp.int32(n)), H)

    def eliminate(k: Array, H: Array) -> Array:
        count, inverse = plan.count[k], _inverse(settled(block(H, k, k)))

        def scale(a: Array, H: Array) -> Array:
            j = plan.links[k, a]
            return put(H, _times(inverse, block(H, k, j)), k, j)

        def clear(pair: Array, H: Array) -> Array:
            i, j = plan.links[k, pair // (count + 1)], plan.links[k, pair % (count + 1)]
            return put(H, block(H, i, j) - _times(block(H, i, k), block(H, k, j)), i, j)

        H = fori_loop(0, count + 1, scale, H)
        return fori_loop(0, count * (count + 1), clear, H)

    def substitute(back: Array, x: Array) -> Array:
        k = n - 1 - back

        def take(a: Array, own: Array) -> Array:
            j = plan.links[k, a]
            return own - _apply(block(H, k, j), block(x, j))

        return put(x, fori_loop(0, plan.count[k], take, block(H, k, jnp.int32(n))[:, 0]), k)

    H = fori_loop(0, n, eliminate, H)
    return fori_loop(0, n, substitute, jnp.zeros_like(r))


def block(x: Array, *at: Array) -> Array:
    """x[at], for numbers that are in range."""
    sizes = (1,) * len(at) + x.shape[len(at) :]
    return dynamic_slice(x, _corner(x, at), sizes).reshape(sizes[len(at) :])


def put(x: Array, value: Array, *at: Array) -> Array:
    """x with x[at] replaced."""
    return dynamic_update_slice(x, value[(None,) * len(at)], _corner(x, at))


def _corner(x: Array, at: tuple[Array, ...]) -> list[Array]:
    return [jnp.asarray(k, jnp.int32) for k in (*at, *(0,) * (x.ndim - len(at)))]


def _apply(A: Array, x: Array) -> Array:
    return (jnp.swapaxes(A, 0, 1) * x[:, None]).sum(0)


@fence
def _times(A: Array, B: Array) -> Array:
    return (jnp.swapaxes(A, 0, 1)[:, :, None] * B[:, None]).sum(0)


def _inverse(A: Array) -> Array:
    """The inverse of A (w, w, *batch) by Gauss and Jordan; the pivot is the largest of the rows not yet used."""
    w, lanes = len(A), (1,) * (A.ndim - 2)
    number = jnp.arange(w).reshape(w, *lanes)
    unit = jnp.broadcast_to((number[:, None] == number).astype(A.dtype), A.shape)

    def step(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        A, B, pivots = carry
        column = dynamic_index_in_dim(A, k, 1, False)
        size = jnp.where((pivots > 0).any(0), -1, jnp.abs(column))
        here = number == jnp.argmax(size, 0)
        pick = lambda X: jnp.where(here[:, None], X, 0).sum(0)  # noqa: E731
        pivot = jnp.where(here, column, 0).sum(0)
        rows = [pick(X) / pivot for X in (A, B)]
        A, B = (jnp.where(here[:, None], row, X - column[:, None] * row) for X, row in zip((A, B), rows, strict=True))
        return A, B, put(pivots, here.astype(A.dtype), k)

    _, B, pivots = fori_loop(0, w, step, (A, unit, jnp.zeros_like(A)))
    return _times(pivots, B)
