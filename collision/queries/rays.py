"""cast_rays: the first hits of rays in a scene at one instant.

One kernel call serves all shapes of a kind (`spans.py`), one each mesh and heightfield (`surfaces.py`); the
nearest hit of all is the result.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Vec3
from ...engine.model import Model
from ...engine.native.surface import native_jit
from ...engine.shaped import Bool, Float, Int
from ...engine.topology import Topology
from ..geometry.near import length_and_direction
from ..posed import Shapes, shapes_at, shapes_known
from .spans import SPANS, first_crossing
from .surfaces import heightfield, triangles

TOGETHER = 8  # rays at a time, where each meets thousands of triangles


class RayHits(NamedTuple):
    """The first hit of each ray; points and normals are 0 if there is none.

    distance: along the ray, inf if it hits nothing [m].
    shape: the shape, -1 for none.
    link: the link that carries the shape, -1 for the world and for none.
    point: in the world [m].
    normal: unit, world axes, outward.
    """

    distance: Float[Array, "*batch R"]
    shape: Int[Array, "*batch R"]
    link: Int[Array, "*batch R"]
    point: Float[Array, "*batch R 3"]
    normal: Float[Array, "*batch R 3"]


@native_jit
def cast_rays(
    model: Model,
    q: Float[Array, "*#batch nq"],
    origins: Float[Array, "*#batch R 3"],
    directions: Float[Array, "*#batch R 3"],
    *,
    max_distance: Float[Array, "*#batch"] | float = jnp.inf,
    among: Bool[Array, " ns"] | None = None,
) -> RayHits:
    """The first hits of rays at the coordinates q; rays have the same leading axes.

    A ray that begins inside a shape hits it where it leaves it. Meshes with convex="none" are surfaces, which are hit
    from both sides. Hits are exact to rounding.

    origins: in the world [m].
    directions: of any length, world axes; a ray with length 0 hits nothing.
    max_distance: length of the rays [m].
    among: shapes that they can hit; None: all.
    """
    shapes = shapes_at(model, q)
    dtype = shapes.pose.p.x.dtype
    o, d = (jnp.moveaxis(jnp.asarray(x, dtype), -2, 0) for x in (origins, directions))
    o, d = (jnp.broadcast_to(x, (x.shape[0], *shapes.batch, 3)) for x in (o, d))
    length, d = length_and_direction(Vec3.of(d), Vec3(1.0, 0.0, 0.0))
    o = Vec3.of(o)
    parts = [_solids(shapes, kind, index, o, d) for kind, index in _by_kind(model.topology)]
    parts += [
        _surface(shapes, k, o, d)
        for k, kind in enumerate(model.topology.shape_kinds)
        if kind in ("mesh", "heightfield")
    ]
    number, t, normal = _concatenate_hits(parts, length)
    allowed = jnp.ones(len(model.topology.shape_kinds), bool) if among is None else jnp.asarray(among)
    t = jnp.where(allowed[number].reshape(-1, *(1,) * (t.ndim - 1)), t, jnp.inf)
    return _nearest(model.topology, number, t, normal, o, d, jnp.where(length > 0, max_distance, -1.0))


def _by_kind(topology: Topology) -> list[tuple[str, tuple[int, ...]]]:
    """Group convex shapes by kind, hulls also by their approximate number of vertices."""
    groups: dict[tuple[str, int], list[int]] = {}
    for k, (kind, (start, stop)) in enumerate(zip(topology.shape_kinds, topology.shape_points, strict=True)):
        if kind in SPANS:
            size = (stop - start - 1).bit_length() if kind == "hull" else 0
            groups.setdefault((kind, size), []).append(k)
    return [(kind, tuple(index)) for (kind, _), index in groups.items()]


Part = tuple[tuple[int, ...], Array, Vec3]  # shapes (n,), t and normals (n, R, *batch) in the world


def _solids(shapes: Shapes, kind: str, index: tuple[int, ...], o: Vec3, d: Vec3) -> Part:
    some = shapes_known(shapes, kind, index)

    def one(o: Vec3, d: Vec3) -> tuple[Array, Vec3]:
        t, normal = first_crossing(SPANS[kind](some.solid, *_own_axes(some.pose, o, d)))
        return t, some.pose.R @ normal

    t, normal = jax.vmap(one, out_axes=1)(o, d)
    return index, t, normal


def _surface(shapes: Shapes, shape: int, o: Vec3, d: Vec3) -> Part:
    topology, pose = shapes.topology, jax.tree.map(lambda x: x[shape], shapes.pose)
    start, stop = topology.shape_points[shape]
    points = shapes.parameter("points")[start:stop]
    size = shapes.parameter("shape_size")[shape]

    def one(ray: tuple[Vec3, Vec3]) -> tuple[Array, Vec3]:
        if topology.shape_kinds[shape] == "heightfield":
            cell = (size[..., 0], size[..., 1])
            t, normal = heightfield(points[..., 2], topology.shape_grid[shape], cell, *_own_axes(pose, *ray))
        else:
            a, b, c = (Vec3.of(points[k::3]) for k in range(3))
            t, normal = triangles(a, b, c, *_own_axes(pose, *ray))
        return t, pose.R @ normal

    hits = jax.lax.map(one, (o, d), batch_size=TOGETHER)
    return (shape,), *jax.tree.map(lambda x: x[None], hits)


def _own_axes(pose: Transform, o: Vec3, d: Vec3) -> tuple[Vec3, Vec3]:
    return pose.R.T @ (o - pose.p), pose.R.T @ d


def _concatenate_hits(parts: list[Part], like: Array) -> tuple[np.ndarray, Array, Vec3]:
    """Join the hits of all parts: shapes (n,), t and normals (n, R, *batch)."""
    number = np.array([k for index, *_ in parts for k in index], np.int32)
    t, normals = [jnp.zeros((0, *like.shape), like.dtype)], []
    for index, times, normal in parts:
        shape = (len(index), *like.shape)
        t.append(jnp.broadcast_to(times, shape))
        normals.append(jax.tree.map(lambda x, shape=shape: jnp.broadcast_to(x, shape), normal))
    concatenated = jax.tree.map(lambda *x: jnp.concatenate(x), Vec3(t[0], t[0], t[0]), *normals)
    return number, jnp.concatenate(t), concatenated


def _nearest(topology: Topology, number: np.ndarray, t: Array, normal: Vec3, o: Vec3, d: Vec3, most: Array) -> RayHits:
    links = jnp.asarray(np.array((*topology.shape_links, -1), np.int32))
    nothing = jnp.full((1, *most.shape), jnp.inf, most.dtype)  # a row that exists also in a scene without shapes
    t = jnp.concatenate([t, nothing])
    row = jnp.argmin(t, 0)
    best = jnp.take_along_axis(t, row[None], 0)[0]
    hit = jnp.isfinite(best) & (best <= most)
    best = jnp.where(hit, best, jnp.inf)
    n = Vec3(*(jnp.take_along_axis(jnp.concatenate([x, nothing * 0]), row[None], 0)[0] for x in normal.xyz))
    p = o + d * jnp.where(hit, best, 0)
    shape = jnp.where(hit, jnp.asarray(np.append(number, -1))[row], -1)

    def surface(x: Array) -> Array:
        return jnp.moveaxis(x, 0, -1)

    def vectors(v: Vec3) -> Array:
        return jnp.stack([surface(jnp.where(hit, x, 0)) for x in v.xyz], -1)

    return RayHits(surface(best), surface(shape), surface(links[shape]), vectors(p), vectors(n))
