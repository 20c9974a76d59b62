"""Seams: what slides over flush shapes of one link strikes none of their edges.

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
from collections import Counter
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.vec3 import Vec3
from ..engine.topology import Topology
from .culling.volumes import Volume
from .posed import Shapes, shapes_picked
from .proximities import Proximities

T = TypeVar("T")
FLUSH = 10  # gap bands: a height that is no obstacle, and the largest gap of a pair that touches
PARALLEL = 1e-6  # square of the sine of the angle between equal directions
EDGED = frozenset({"box", "hull", "cylinder"})


def smooth_seams(shapes: Shapes, volumes: Volume, near: Proximities) -> Proximities:
    """Return the same rows; those of pairs that meet at the edge of a flush seam have the normal of the surface.

    volumes: bounding volumes of all shapes, components (ns, *batch).
    """
    if not near.pair.shape[-1] or not _groups(shapes.topology)[1].any():
        return near
    fixed = Shapes(*jax.lax.stop_gradient((shapes.model, shapes.pose)), shapes.batch)
    leader, gap = _leaders(fixed, *jax.lax.stop_gradient((volumes, near)))
    normal = jnp.take_along_axis(near.normal, leader[..., None], -2)
    moved = (normal * (near.point_a - near.point_b)).sum(-1)  # the gap's derivative is that of its points
    own = leader == jnp.arange(leader.shape[-1])
    return near._replace(gap=jnp.where(own, near.gap, gap + (moved - jax.lax.stop_gradient(moved))), normal=normal)


def _leaders(shapes: Shapes, volumes: Volume, near: Proximities) -> tuple[Array, Array]:
    """Return the row whose normal each row gets, its own but at seams, and the gap along it, (*batch, N)."""
    group, edged = (jnp.asarray(x) for x in _groups(shapes.topology))
    pairs, none = jnp.asarray(np.array(shapes.topology.pairs, np.int32)), len(group)
    pair, gap, active = (jnp.moveaxis(x, -1, 0) for x in (near.pair, near.gap, near.active))
    normal, height = Vec3.of(jnp.moveaxis(near.normal, -2, 0)), FLUSH * shapes.model.gap_band
    number = jnp.broadcast_to(jnp.arange(len(pair), dtype=jnp.int32).reshape(-1, *(1,) * (pair.ndim - 1)), pair.shape)
    own = jnp.where(active & (gap <= height), group[jnp.maximum(pair, 0)], none)

    def of_groups(index: Array, values: Array) -> Array:
        """Return one of the values of each group, at the rows of its members."""
        table = jnp.zeros((none + 1, *values.shape[1:]), values.dtype)
        return _at(jnp.put_along_axis(table, index, values, 0, inplace=False), own)

    def lead(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        k, several, leader, gap = carry
        row = several.argmax(0, keepdims=True).astype(jnp.int32)  # the first that is left
        a, b = (pairs[_at(pair, row), side] for side in (0, 1))
        apart = _ends(shapes, volumes, a, normal)[0] - _ends(shapes, volumes, b, normal)[1]
        fits = (own == _at(own, row)) & _differ(normal, _at(normal, row)) & (apart >= -height)
        best = jnp.where(fits, apart, -jnp.inf).argmax(0, keepdims=True).astype(jnp.int32)
        some = fits.any(0, keepdims=True) & _at(several, row)
        new = jnp.where(some, best, _at(leader, row)), jnp.where(some, _at(apart, best), _at(gap, row))
        put = lambda x, y: jnp.put_along_axis(x, row, y, 0, inplace=False)  # noqa: E731
        return k + 1, put(several, jnp.zeros_like(some)), put(leader, new[0]), put(gap, new[1])

    def at_seams() -> tuple[Array, Array]:
        # rows of groups that touch along several directions
        turned = _differ(normal, _at(normal, of_groups(own, number)))
        several = of_groups(jnp.where(turned, own, none), turned) & (own < none) & edged[jnp.maximum(pair, 0)]
        count = several.sum(0, dtype=jnp.int32).max()
        return jax.lax.while_loop(lambda x: x[0] < count, lead, (jnp.int32(0), several, number, gap))[2:]

    found = jax.lax.cond((own < none).any(), at_seams, lambda: (number, gap))
    leader, gap = (jnp.moveaxis(x, 0, -1) for x in found)
    return leader, gap


def _ends(shapes: Shapes, volumes: Volume, index: Array, n: Vec3) -> tuple[Array, Array]:
    """Return the ends of a shape, index (1, *batch), along directions n (N, *batch): the least n.x and the largest."""
    volume, kinds = _at(volumes, index), shapes.topology.shape_kinds
    middle, half = n.dot(volume.center), volume.extent(n)
    low, high = middle - half, middle + half
    if "hull" in kinds:
        one = shapes_picked(shapes, "hull", index)
        heights = n.dot(one.pose.R @ one.solid.hull.vertex + one.pose.p)
        is_hull = jnp.asarray([kind == "hull" for kind in kinds])[index]
        low, high = jnp.where(is_hull, heights.min(0), low), jnp.where(is_hull, heights.max(0), high)
    return low, high


def _differ(m: Vec3, n: Vec3) -> Array:
    """Return whether unit vectors have different directions."""
    across = m.cross(n)
    return across.dot(across) > PARALLEL


def _at(x: T, index: Array) -> T:
    """Return the rows of x (n, *batch or ones) at indices (m, *batch)."""
    return jax.tree.map(lambda x: jnp.take_along_axis(jnp.broadcast_to(x, (len(x), *index.shape[1:])), index, 0), x)


@functools.lru_cache(maxsize=256)
def _groups(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each pair of shapes, those of the same two links, and whether it may meet at a seam.

    A group that has none of these, or no other pair, counts as none: the number of pairs.
    """
    links = [tuple(sorted(topology.shape_links[k] for k in pair)) for pair in topology.pairs]
    edged = [all(topology.shape_kinds[k] in EDGED for k in pair) for pair in topology.pairs]
    sizes, some = Counter(links), {ends for ends, edge in zip(links, edged, strict=True) if edge}
    numbers = {ends: k for k, ends in enumerate(ends for ends in sizes if sizes[ends] > 1 and ends in some)}
    group = np.array([numbers.get(ends, len(links)) for ends in links], np.int32)
    return group, np.array(edged, bool) & (group < len(links))
