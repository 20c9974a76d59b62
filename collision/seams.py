"""Normals at seams: what slides over flush shapes of one link strikes none of their edges.

A box slides from one tile of a floor to the next. Its contacts let it in by a part of the gap band, so its leading edge
meets the side of the next tile, by less than that height. Two directions then separate box and tile equally well, to
within the bands that contacts use: that of the motion, and that of the floor. A detector may return either.

Such a pair gets the normal of another pair of the same two links that touches, if that direction separates it as well.
The constraint of the other pair keeps the two apart, so this one need not.

Hulls are separated by their corners, other shapes by their bounding boxes, which are too large for a cylinder on its
side, and then nothing changes. Heightfields have no seams (`pairs/heightfield.py`).
"""

from __future__ import annotations

import functools
from itertools import chain
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.vec3 import Vec3
from ..engine.compaction import compact
from ..engine.model import Model
from ..engine.topology import Topology
from .culling.volumes import Volume
from .posed import Shapes, shapes_picked
from .proximities import Proximities

T = TypeVar("T")
FLUSH = 10  # gap bands: a height that is no obstacle, and the largest gap of a pair that touches
PARALLEL = 1e-6  # square of the sine of the angle between equal directions
EDGED = frozenset({"box", "hull", "cylinder"})  # kinds of shapes that may meet at a seam


class _Touching(NamedTuple):
    """Rows that touch in front, (m, *batch).

    row: indices of the rows.
    real: whether there is a row.
    pair: rows of `topology.pairs`.
    group: number of the pair's two links, `count` for none.
    normal: as in `Proximities`.
    count: number of groups.
    """

    row: Array
    real: Array
    pair: Array
    group: Array
    normal: Vec3
    count: int


def smooth_seams(shapes: Shapes, volumes: Volume, near: Proximities, room: int | None = None) -> Proximities:
    """Return the same rows; those of pairs that meet at the edge of a flush seam have the normal of the surface.

    volumes: bounding volumes of all shapes, components (ns, *batch).
    room: largest number of rows that touch; None: all. If more do, the last ones stay as they are.
    """
    if not near.pair.shape[-1] or not may_meet_at_seams(shapes.topology):
        return near
    fixed = Shapes(*jax.lax.stop_gradient((shapes.model, shapes.pose)), shapes.batch)
    gap = jnp.moveaxis(jax.lax.stop_gradient(near.gap), -1, 0)
    leader, gap = _leaders(fixed, jax.lax.stop_gradient(volumes), gap, _touching_rows(shapes.model, near, room))
    own = leader == jnp.arange(leader.shape[-1])

    def turn() -> tuple[Array, Array]:
        normal = jnp.take_along_axis(near.normal, leader[..., None], -2)
        moved = (normal * (near.point_a - near.point_b)).sum(-1)  # the gap's derivative is that of its points
        return jnp.where(own, near.gap, gap + (moved - jax.lax.stop_gradient(moved))), normal

    new_gap, normal = jax.lax.cond(own.all(), lambda: (near.gap, near.normal), turn)
    return near._replace(gap=new_gap, normal=normal)


def _touching_rows(model: Model, near: Proximities, room: int | None) -> _Touching:
    """Return the rows that touch, of groups with pairs that may meet at a seam; without derivatives.

    room: their largest number; None: that of all rows. If there are more, the last ones are left out.
    """
    model, near = jax.lax.stop_gradient((model, near))
    groups = _groups(model.topology)[0]
    pair, gap, active = (jnp.moveaxis(x, -1, 0) for x in (near.pair, near.gap, near.active))
    group = jnp.asarray(groups)[jnp.maximum(pair, 0)]
    touches = active & (gap <= FLUSH * model.gap_band) & (group >= 0)
    row, real = compact(touches, min(room or len(pair), len(pair)))
    count = int(groups.max()) + 1
    normal = Vec3(*(_at(jnp.moveaxis(near.normal[..., k], -1, 0), row) for k in range(3)))
    return _Touching(row, real, _at(pair, row), jnp.where(real, _at(group, row), count), normal, count)


def _leaders(shapes: Shapes, volumes: Volume, gap: Array, these: _Touching) -> tuple[Array, Array]:
    """Return the row whose normal each row gets, its own but at seams, and the gap along it, (*batch, N).

    gap: (N, *batch) [m].
    """
    edged, height = jnp.asarray(_groups(shapes.topology)[1]), FLUSH * shapes.model.gap_band
    pairs, n = jnp.asarray(np.array(shapes.topology.pairs, np.int32)), these.normal
    number = jnp.broadcast_to(jnp.arange(len(gap), dtype=jnp.int32).reshape(-1, *(1,) * (gap.ndim - 1)), gap.shape)

    def of_groups(index: Array, values: Array) -> Array:
        """Return one of the values of each group, at the rows of its members."""
        table = jnp.zeros((these.count + 1, *values.shape[1:]), values.dtype)
        return _at(_put(table, index, values), these.group)

    def lead(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        k, several, leader, gap = carry
        one = several.argmax(0, keepdims=True).astype(jnp.int32)  # the first that is left
        a, b = (pairs[_at(these.pair, one), side] for side in (0, 1))
        apart = _ends(shapes, volumes, a, n)[0] - _ends(shapes, volumes, b, n)[1]
        fits = (these.group == _at(these.group, one)) & differ(n, _at(n, one)) & (apart >= -height)
        best = jnp.where(fits, apart, -jnp.inf).argmax(0, keepdims=True).astype(jnp.int32)
        some, row = fits.any(0, keepdims=True) & _at(several, one), _at(these.row, one)
        leader = _put(leader, row, jnp.where(some, _at(these.row, best), _at(leader, row)))
        gap = _put(gap, row, jnp.where(some, _at(apart, best), _at(gap, row)))
        return k + 1, _put(several, one, jnp.zeros_like(some)), leader, gap

    def at_seams() -> tuple[Array, Array]:
        # rows of groups that touch along several directions
        turned = differ(n, _at(n, of_groups(these.group, number[: len(these.group)])))
        several = of_groups(jnp.where(turned, these.group, these.count), turned) & these.real & edged[these.pair]
        count = several.sum(0, dtype=jnp.int32).max()
        return jax.lax.while_loop(lambda x: x[0] < count, lead, (jnp.int32(0), several, number, gap))[2:]

    leaders = jax.lax.cond(these.real.any(), at_seams, lambda: (number, gap))
    leader, gap = (jnp.moveaxis(x, 0, -1) for x in leaders)
    return leader, gap


def _ends(shapes: Shapes, volumes: Volume, index: Array, n: Vec3) -> tuple[Array, Array]:
    """Return the ends of a shape, index (1, *batch), along directions n (m, *batch): the least n.x and the largest."""
    volume, kinds = _at(volumes, index), shapes.topology.shape_kinds
    middle, half = n.dot(volume.center), volume.extent(n)
    low, high = middle - half, middle + half
    if "hull" in kinds:
        one = shapes_picked(shapes, "hull", index)
        heights = n.dot(one.pose.R @ one.solid.hull.vertex + one.pose.p)
        is_hull = jnp.asarray([kind == "hull" for kind in kinds])[index]
        low, high = jnp.where(is_hull, heights.min(0), low), jnp.where(is_hull, heights.max(0), high)
    return low, high


def may_meet_at_seams(topology: Topology) -> bool:
    """Return whether several pairs of shapes of the same two links may touch at once, as a box and tiles."""
    return bool(_groups(topology)[1].any())


@functools.lru_cache(maxsize=256)
def _groups(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each pair of shapes, those of the same two links, and whether it may meet at a seam.

    A pair that is alone has no group, -1, and so have all of a group in which none may meet at a seam.
    """
    if len(set(topology.shape_links)) == len(topology.shape_links):  # one shape each
        return np.full(len(topology.pairs), -1, np.int32), np.zeros(len(topology.pairs), bool)
    pairs = np.fromiter(chain.from_iterable(topology.pairs), np.int32, 2 * len(topology.pairs)).reshape(-1, 2)
    kinds = np.array([kind in EDGED for kind in topology.shape_kinds], bool)
    links, edged = np.sort(np.array(topology.shape_links, np.int64)[pairs], 1), kinds[pairs].all(1)
    _, of_pair, sizes = np.unique(
        links[:, 0] * (topology.n_links + 1) + links[:, 1], return_inverse=True, return_counts=True
    )
    chosen = (sizes > 1) & (np.bincount(of_pair[edged], minlength=len(sizes)) > 0)
    group = np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32)[of_pair]
    return group, edged & (group >= 0)


def differ(m: Vec3, n: Vec3) -> Array:
    """Return whether unit vectors have different directions."""
    across = m.cross(n)
    return across.dot(across) > PARALLEL


def _at(x: T, index: Array) -> T:
    """Return the rows of x (n, *batch or ones) at indices (m, *batch)."""
    return jax.tree.map(lambda x: jnp.take_along_axis(jnp.broadcast_to(x, (len(x), *index.shape[1:])), index, 0), x)


def _put(x: Array, index: Array, y: Array) -> Array:
    """Return x (n, *batch) with y (m, *batch) at indices (m, *batch)."""
    return jnp.put_along_axis(x, index, y, 0, inplace=False)
