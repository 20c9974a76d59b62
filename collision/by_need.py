"""The narrow phase by need: kernels that search see the pairs whose bounding volumes are near, a vector at a time.

Of all other pairs it is known how far apart they are at least, and along which direction (`culling/volumes.py`). That
is enough for the length of a step (`safe_step.py`), and they have no contacts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.compaction import in_front, up_to_the_last
from ..engine.rows import take
from .bounds import bounding_halves, bounding_spheres
from .culling.volumes import Volume, from_plane, separation
from .geometry.near import Near, only_where
from .narrow import KERNELS, attach_to_poses, search, swap_sides
from .posed import Shapes, found, rows_first

VECTOR = 64  # bytes


class Pairs(NamedTuple):
    """n pairs of shapes of two kinds, a key of KERNELS.

    first, second: (n,) or (n, *batch) the shapes, in that order.  swapped: bool, where the second is the pair's shape
    A.  there: bool, which of them are pairs at all.  These two (n,) or (n, *batch), or one for all.
    """

    kinds: tuple[str, str]
    first: Any
    second: Any
    swapped: Any
    there: Any


class NearRows(NamedTuple):
    """order: (m, *batch) which pairs were looked at, in front, and -1.  rows: theirs, components (m, *batch).
    apart: (n, *batch) of each pair that was not, a bound of its gap and the direction it holds for; gap inf of others.
    """

    order: Array
    rows: tuple[Near, ...]
    apart: Near


def volumes(shapes: Shapes) -> Volume:
    """Around all shapes, components (ns, *batch)."""
    ball, pose = jax.lax.stop_gradient((bounding_spheres(shapes.model), shapes.pose))
    column = lambda x: rows_first(x, shapes.batch)  # noqa: E731
    center, half = column(ball.center), column(jax.lax.stop_gradient(bounding_halves(shapes.model)))
    ends = (tuple(x[..., k] for k in range(3)) for x in (center, half))
    p, h = (type(pose.p)(*x) for x in ends)
    return Volume(pose.R @ p + pose.p, column(ball.radius[..., None])[..., 0], h, pose.R)


def meet_near(shapes: Shapes, around: Volume, look: Array, pairs: Pairs) -> NearRows:
    """look: (ns, *batch) [m]: a pair is looked at where the gap of its volumes is no larger than the sum of its two."""
    batch, n = shapes.batch, len(pairs.first)

    def how_far(given: tuple[Volume, Array], rows: Any) -> tuple[Near, Array]:
        (a, look_a), (b, look_b) = (_of(given, k, batch) for k in rows)
        apart = (from_plane if pairs.kinds[0] == "plane" else separation)(a, b)
        return apart, apart.gap <= look_a + look_b

    if isinstance(pairs.first, np.ndarray):
        apart, near = how_far((around, look), pairs[1:3])
    else:
        apart, near = up_to_the_last(how_far, pairs.there, (around, look), pairs[1:3])
    near = near & pairs.there
    near = jnp.broadcast_to(near, (n, *batch))
    apart = only_where(~near & pairs.there, apart)
    each = VECTOR // apart.gap.dtype.itemsize
    order, real = in_front(near, -(-n // each) * each)
    order = jnp.where(real, order, order[:1])  # what fills a vector up is no other pair, which might take longer
    count = near.sum(0, dtype=jnp.int32).max()
    fixed = Shapes(*jax.lax.stop_gradient((shapes.model, shapes.pose)), batch)
    kinds, none = pairs.kinds, jnp.zeros(order.shape, apart.gap.dtype)
    blank = jax.tree.map(lambda _: none, apart)._replace(gap=none + jnp.inf)

    def some(carry: tuple[Array, tuple[Near, ...]]) -> tuple[Array, tuple[Near, ...]]:
        k, rows = carry
        index = jax.lax.dynamic_slice_in_dim(order, k * each, each)
        first, second = (found(fixed, kind, _at(x, index)) for kind, x in zip(kinds, pairs[1:3], strict=True))
        put = lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, k * each, 0)  # noqa: E731
        return k + 1, jax.tree.map(put, rows, search(kinds, first, second))

    vectors = (count + each - 1) // each
    _, rows = jax.lax.while_loop(lambda x: x[0] < vectors, some, (jnp.int32(0), (blank,) * KERNELS[kinds].rows))
    poses = (jax.tree.map(lambda x, k=k: _at(x, _at(k, order)), shapes.pose) for k in pairs[1:3])
    rows = swap_sides(
        attach_to_poses(kinds, tuple(only_where(real, row) for row in rows), *poses),
        _gather_swapped(pairs.swapped, order),
    )
    apart = swap_sides((apart,), pairs.swapped)[0]
    return NearRows(jnp.where(real, order, -1), rows, apart)


def _of(x: Any, index: Any, batch: tuple[int, ...]) -> Any:
    """Of x (ns, *batch or ones) the shapes `index`."""
    if isinstance(index, np.ndarray):
        return jax.tree.map(lambda x: take(x, index.tolist()), x)
    return jax.tree.map(lambda x: jnp.take_along_axis(jnp.broadcast_to(x, (len(x), *batch)), index, 0), x)


def _at(x: Any, index: Array) -> Array:
    """x (n,) or (n, *batch) at the places index (m, *batch)."""
    return jnp.asarray(x)[index] if np.ndim(x) == 1 else jnp.take_along_axis(x, index, 0)


def _gather_swapped(swapped: Any, order: Array) -> Any:
    return swapped if swapped is None or np.ndim(swapped) == 0 else _at(np.asarray(swapped).reshape(-1), order)
