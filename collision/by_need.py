"""The narrow phase on demand: kernels that search run only for pairs whose bounding volumes are near.

All other pairs get a lower bound of their distance and its direction (`culling/volumes.py`). These are enough for the
length of a step (`safe_step.py`), and the pairs have no contacts.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import compact, map_to_last
from ..engine.rows import take
from .bounds import bounding_halves, bounding_spheres
from .culling.volumes import Volume, between_centres, from_plane, separation
from .geometry.near import Near, only_where
from .narrow import KERNELS, attach_to_surfaces, search, swap_sides
from .posed import Shapes, rows_first, shapes_picked

T = TypeVar("T")
Indices = np.ndarray | Array  # those of numpy are known when a program is traced
VECTOR = 64  # bytes of one SIMD vector


class Pairs(NamedTuple):
    """n pairs of shapes of two kinds.

    kinds: a key of KERNELS.
    first, second: (n,) or (n, *batch) the shapes, in that order.
    swapped: bool, (n,), (n, *batch) or one for all: whether the second is the pair's shape A.
    there: bool, (n,), (n, *batch) or one for all: whether the row holds a pair.
    """

    kinds: tuple[str, str]
    first: Indices
    second: Indices
    swapped: Indices | np.bool_ | None
    there: Any


class NearRows(NamedTuple):
    """Rows of near pairs, and bounds of the others.

    order: (m, *batch) indices of the near pairs, then -1.
    rows: their rows, components (m, *batch).
    needed: (*batch) number of near pairs; if it is above m, some have no row.
    apart: (n, *batch) lower bound of the gap of all other pairs, and its direction; gap inf for near pairs.
    """

    order: Array
    rows: tuple[Near, ...]
    needed: Array
    apart: Near


def volumes(shapes: Shapes) -> Volume:
    """Bounding volumes of all shapes, components (ns, *batch)."""
    ball, pose = jax.lax.stop_gradient((bounding_spheres(shapes.model), shapes.pose))
    column = lambda x: rows_first(x, shapes.batch)  # noqa: E731
    center, half = column(ball.center), column(jax.lax.stop_gradient(bounding_halves(shapes.model)))
    ends = (tuple(x[..., k] for k in range(3)) for x in (center, half))
    p, h = (type(pose.p)(*x) for x in ends)
    return Volume(pose.R @ p + pose.p, column(ball.radius[..., None])[..., 0], h, pose.R)


def meet_near(shapes: Shapes, around: Volume, look: Array, pairs: Pairs, capacity: int | None = None) -> NearRows:
    """Run the narrow phase for near pairs.

    look: (ns, *batch) range of each shape; a pair is near if the gap of its volumes is at most the sum of both [m].
    capacity: number of near pairs that have rows; None: all pairs.
    """
    batch, n = shapes.batch, len(pairs.first)

    def how_far(given: tuple[Volume, Array], rows: tuple[Indices, Indices]) -> tuple[Near, Array]:
        (a, look_a), (b, look_b) = (_of(given, k, batch) for k in rows)
        return (from_plane if pairs.kinds[0] == "plane" else between_centres)(a, b), look_a + look_b

    if isinstance(pairs.first, np.ndarray):
        apart, looks = how_far((around, look), pairs[1:3])
    else:
        apart, looks = map_to_last(how_far, pairs.there, (around, look), pairs[1:3])
    apart = jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *batch)), apart)
    each = VECTOR // apart.gap.dtype.itemsize

    def in_vectors(some: Array, most: int) -> tuple[Array, Array, Array]:
        """Return the indices of some pairs, at most `most`, whether each is real, and the number of vectors."""
        vectors = -(-most // each)
        order, real = compact(some, vectors * each)
        order = jnp.where(real, order, order[:1])  # padding repeats a pair: any other might take longer
        return order, real, jnp.minimum((some.sum(0, dtype=jnp.int32).max() + each - 1) // each, vectors)

    if pairs.kinds[0] != "plane":
        order, _, vectors = in_vectors((apart.gap <= looks) & pairs.there, n)

        def closer(carry: tuple[Array, Near]) -> tuple[Array, Near]:
            k, apart = carry
            index = jax.lax.dynamic_slice_in_dim(order, k * each, each)
            best = separation(*(_of(around, _at(x, index), batch) for x in pairs[1:3]))
            return k + 1, jax.tree.map(lambda x, y: jnp.put_along_axis(x, index, y, 0, inplace=False), apart, best)

        apart = jax.lax.while_loop(lambda x: x[0] < vectors, closer, (jnp.int32(0), apart))[1]
    near = (apart.gap <= looks) & pairs.there
    apart = only_where(~near & pairs.there, apart)
    order, real, vectors = in_vectors(near, n if capacity is None else min(n, capacity))
    fixed = Shapes(*jax.lax.stop_gradient((shapes.model, shapes.pose)), batch)
    kinds, none = pairs.kinds, jnp.zeros(order.shape, apart.gap.dtype)
    blank = jax.tree.map(lambda _: none, apart)._replace(gap=none + jnp.inf)

    def some(carry: tuple[Array, tuple[Near, ...]]) -> tuple[Array, tuple[Near, ...]]:
        k, rows = carry
        index = jax.lax.dynamic_slice_in_dim(order, k * each, each)
        first, second = (shapes_picked(fixed, kind, _at(x, index)) for kind, x in zip(kinds, pairs[1:3], strict=True))
        put = lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, k * each, 0)  # noqa: E731
        return k + 1, jax.tree.map(put, rows, search(kinds, first, second))

    _, rows = jax.lax.while_loop(lambda x: x[0] < vectors, some, (jnp.int32(0), (blank,) * KERNELS[kinds].rows))
    size = Vec3.of(jnp.broadcast_to(shapes.parameter("shape_size"), (len(shapes.pose.p.x), *batch, 3)))
    sized = (jax.tree.map(lambda x, k=k: _at(x, _at(k, order)), (size, shapes.pose)) for k in pairs[1:3])
    rows = swap_sides(
        attach_to_surfaces(kinds, tuple(only_where(real, row) for row in rows), *sized),
        _gather_swapped(pairs.swapped, order),
    )
    apart = swap_sides((apart,), pairs.swapped)[0]
    return NearRows(jnp.where(real, order, -1), rows, near.sum(0, dtype=jnp.int32), apart)


def _of(x: T, index: Indices, batch: tuple[int, ...]) -> T:
    """x (ns, *batch or ones) at the shapes `index`."""
    if isinstance(index, np.ndarray):
        return jax.tree.map(lambda x: take(x, index.tolist()), x)
    return jax.tree.map(lambda x: jnp.take_along_axis(jnp.broadcast_to(x, (len(x), *batch)), index, 0), x)


def _at(x: Indices, index: Array) -> Array:
    """x (n,) or (n, *batch) at the indices (m, *batch)."""
    return jnp.asarray(x)[index] if np.ndim(x) == 1 else jnp.take_along_axis(x, index, 0)


def _gather_swapped(swapped: Indices | np.bool_ | None, order: Array) -> Indices | np.bool_ | None:
    return swapped if swapped is None or np.ndim(swapped) == 0 else _at(np.asarray(swapped).reshape(-1), order)
