"""Hulls: the numbering of faces and edges, known when the scene is compiled, and Hull components from points."""

from __future__ import annotations

import functools
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.fence import fence
from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Vec3
from ...engine.algebra.zero import ZERO
from .near import Z_AXIS, direction
from .solid import Edges, Hull

T = TypeVar("T")
Rings = tuple[tuple[int, ...], ...]


class Numbering(NamedTuple):
    """ring: (corners, faces) vertex indices; edge: (2, edges) start and end; sides: (2, edges) the faces on the left
    and right. Short rings repeat their last corner. Static, unless each item has its own."""

    ring: np.ndarray | Array
    edge: np.ndarray | Array
    sides: np.ndarray | Array


@functools.cache
def numbering(rings: Rings) -> Numbering:
    """The numbering of one hull, from the outlines of its faces (vertex indices, counter-clockwise from outside)."""
    left = {(a, b): f for f, ring in enumerate(rings) for a, b in zip(ring, (*ring[1:], ring[0]), strict=True)}
    edges = [(a, b) for a, b in left if a < b]
    corners = max(len(ring) for ring in rings)
    outlines = np.array([[*ring, *[ring[-1]] * (corners - len(ring))] for ring in rings])
    sides = [(left[a, b], left[b, a]) for a, b in edges]
    return Numbering(outlines.T, np.array(edges).T, np.array(sides).T)


def concatenate_hulls(numberings: list[Numbering], starts: list[int]) -> tuple[np.ndarray, Numbering]:
    """Join the numberings of several hulls, padded to the largest: vertex indices (vertices, n) in
    `Model.points`, where hull k's begin at starts[k], and a Numbering of those columns with a last axis n."""

    def pad(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return np.pad(x, [(0, to - have) for have, to in zip(x.shape, shape, strict=True)], mode="edge")

    columns = []
    for arrays in zip(*numberings, strict=True):
        shape = tuple(np.max([x.shape for x in arrays], 0))
        columns.append(np.stack([pad(x, shape) for x in arrays], -1))
    counts = [int(number.ring.max()) + 1 for number in numberings]
    vertex = np.stack([s + np.minimum(np.arange(max(counts)), c - 1) for s, c in zip(starts, counts, strict=True)], -1)
    return vertex, Numbering(*columns)


def hull_of(vertex: Vec3, number: Numbering) -> Hull:
    """The Hull of vertices (vertices, n, *batch) [m]; the numbering's arrays have a last axis n, or 1 if all are alike,
    or those of the vertices, if each item has its own."""
    normal, offset = _planes(_take_rows(vertex, number.ring))
    start, end = _take_rows(vertex, number.edge[0]), _take_rows(vertex, number.edge[1])
    left, right = _take_rows(normal, number.sides[0]), _take_rows(normal, number.sides[1])
    ring = number.ring.reshape(*number.ring.shape, *(1,) * (2 + jnp.ndim(vertex.x) - 1 - number.ring.ndim))
    return Hull(vertex, normal, offset, jnp.asarray(ring, jnp.int32), Edges(start, end - start, left, right))


def _take_rows(x: T, index: np.ndarray | Array) -> T:
    """Take rows index (..., n), or (..., n, *batch), of columns x (k, n, *batch): (..., n, *batch)."""
    if not isinstance(index, np.ndarray):
        items = jnp.shape(jax.tree.leaves(x)[0])[1:]
        flat = index.reshape(-1, *items)
        return jax.tree.map(lambda c: jnp.take_along_axis(c, flat, 0).reshape(index.shape), x)
    if index.shape[-1] == 1:
        return jax.tree.map(lambda c: jnp.take(c, index[..., 0], 0), x)
    return jax.tree.map(lambda c: c[index, np.arange(index.shape[-1])], x)


@fence
def _planes(ring: Vec3) -> tuple[Vec3, Array]:
    """Outward normals and offsets of faces from their outlines (corners, faces, ...) (Newell's method)."""
    first = jax.tree.map(lambda x: x[:1], ring)
    arm = ring - first
    area = arm.cross(jax.tree.map(lambda x: jnp.roll(x, -1, 0), arm))
    total = jax.tree.map(lambda x: x.sum(0), area)
    normal = direction(total, Z_AXIS)
    return normal, jnp.max(normal.dot(ring), 0)


@fence
def transform_hull(hull: Hull, X: Transform) -> Hull:
    """Return the hull in the frame in which its own frame has the pose X, without its rings."""
    R, p = X.R, X.p
    normal = R @ hull.normal
    e = hull.edges
    edges = Edges(R @ e.start + p, R @ e.along, R @ e.left, R @ e.right)
    return Hull(R @ hull.vertex + p, normal, hull.offset + normal.dot(p), ZERO, edges)


_CUBE = numbering(((0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)))
_PRISM = numbering(((0, 1, 2), (5, 4, 3), (0, 3, 4, 1), (1, 4, 5, 2), (2, 5, 3, 0)))
CUBE, PRISM = (Numbering(*(x[..., None] for x in solid)) for solid in (_CUBE, _PRISM))


def cuboid(half: Vec3) -> Hull:
    """A box with these half extents, its corners numbered by the bits of (z, y, x)."""
    signs = (np.arange(8)[:, None] >> np.arange(3) & 1) * 2 - 1
    own = (8, *(1,) * jnp.ndim(half.x))
    return hull_of(Vec3(*(signs[:, k].reshape(own).astype(h.dtype) * h for k, h in enumerate(half.xyz))), CUBE)
