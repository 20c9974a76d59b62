"""The shapes of a model as kernels take them: poses in the world, and Solids of selected shapes.

Components have the shapes along a leading axis and the batch behind, (ns, *batch).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..engine.algebra.fence import lane_programs
from ..engine.algebra.rotation import Quat
from ..engine.algebra.spatial import Transform
from ..engine.algebra.vec3 import Vec3, pytree
from ..engine.dynamics.kinematics import propagate_poses
from ..engine.forest import Forest
from ..engine.model import Model
from ..engine.rows import take
from ..engine.topology import Topology
from .geometry.hull import Numbering, concatenate_hulls, hull_of, numbering
from .geometry.solid import HeightGrid, Solid

SHAPES = ("shape_size", "shape_position", "shape_quaternion", "points")


@dataclass(frozen=True)
class Shapes:
    """A model's shapes at some coordinates: pose (ns, *batch) in the world [m], and the batch axes."""

    model: Model
    pose: Transform
    batch: tuple[int, ...]

    @property
    def topology(self) -> Topology:
        return self.model.topology

    def parameter(self, name: str) -> Array:
        """Rows of a parameter in front: (rows, *batch or ones, width)."""
        return rows_first(getattr(self.model, name), self.batch)


def rows_first(x: Array, batch: tuple[int, ...]) -> Array:
    """Return an array (..., rows, width) as (rows, *batch or ones, width)."""
    front = jnp.moveaxis(x, -2, 0)
    return front.reshape(front.shape[0], *(1,) * (len(batch) + 2 - front.ndim), *front.shape[1:])


def shapes_at(model: Model, q: Array) -> Shapes:
    """Pose the shapes at the coordinates q (..., nq)."""
    forest = Forest.of(model, q=q)
    own = [jnp.shape(getattr(model, name))[:-2] for name in SHAPES]
    batch = jnp.broadcast_shapes(forest.batch, *own)
    forest = Forest(model.topology, batch, forest.dtype)
    p = Vec3.of(rows_first(model.shape_position, batch))
    R = Quat.of_array(rows_first(model.shape_quaternion, batch)).matrix()
    links = model.topology.shape_links
    still = links.count(-1)  # the world's shapes come first
    poses = [jax.tree.map(lambda x: x[:still], Transform(R, p))]
    if still < len(links):
        link_poses = forest.by_link([link.pose for link in propagate_poses(forest, model, q)])
        link = jax.tree.map(lambda x: take(x, links[still:]), link_poses)
        own = jax.tree.map(lambda x: x[still:], Transform(R, p))
        poses.append(Transform(link.R @ own.R, link.R @ own.p + link.p))
    full = [jax.tree.map(lambda x: jnp.broadcast_to(x, (x.shape[0], *batch)), pose) for pose in poses]
    pose = jax.tree.map(lambda *x: jnp.concatenate(x), *full)
    return Shapes(model, pose, batch)


@pytree
class Some:
    """Some of a model's shapes, all of one kind: their Solid and pose, components (n, *batch); the Solid's batch axes
    may be ones."""

    solid: Solid
    pose: Transform


def shapes_known(shapes: Shapes, kind: str, index: tuple[int, ...]) -> Some:
    """Shapes whose indices are known when the program is traced."""
    return Some(_solids(shapes, kind, index), jax.tree.map(lambda x: take(x, index), shapes.pose))


def shapes_picked(shapes: Shapes, kind: str, index: Array) -> Some:
    """Shapes that each lane picks for itself, index (n, *batch) int."""
    every = tuple(k for k, other in enumerate(shapes.topology.shape_kinds) if other == kind)
    index_in_kind = np.zeros(len(shapes.topology.shape_kinds), np.int32)
    index_in_kind[list(every)] = np.arange(len(every))
    own = jnp.asarray(index_in_kind)[index]
    if kind == "hull" and lane_programs():
        return Some(_hulls(shapes, every, own), jax.tree.map(lambda x: jnp.take_along_axis(x, index, 0), shapes.pose))

    def pick(x: Array) -> Array:
        axis = x.ndim - 1 - len(shapes.batch)
        if x.size == np.prod(x.shape[: axis + 1]):  # the same in all lanes
            return jnp.take(x.reshape(x.shape[: axis + 1]), own, axis)
        x = jnp.broadcast_to(x, (*x.shape[: axis + 1], *shapes.batch))
        return jnp.take_along_axis(x, own.reshape((1,) * axis + own.shape), axis)

    pose = jax.tree.map(lambda x: jnp.take_along_axis(x, index, 0), shapes.pose)
    return Some(jax.tree.map(pick, _solids(shapes, kind, every)), pose)


def _hulls(shapes: Shapes, every: tuple[int, ...], own: Array) -> Solid:
    """Solids of the hulls that each lane selects of all hulls, own (n, *batch): only their corners are gathered, and
    the rest is computed from these, so that nothing is computed for hulls that are not used."""
    vertex, number = _hull_numbers(shapes.topology, every)

    def rows(x: Array, index: Array) -> Array:
        """x (rows, *batch or ones) at index (..., n, *batch)."""
        if x.size == len(x):
            return x.reshape(-1)[index]
        flat = index.reshape(-1, *shapes.batch)
        return jnp.take_along_axis(jnp.broadcast_to(x, (len(x), *shapes.batch)), flat, 0).reshape(index.shape)

    of_each = lambda numbers: jnp.asarray(numbers)[..., own]  # noqa: E731
    points, size = shapes.parameter("points"), shapes.parameter("shape_size")
    corners = Vec3(*(rows(points[..., k], of_each(vertex)) for k in range(3)))
    shape = jnp.asarray(every, jnp.int32)[own]
    return Solid(
        Vec3(*(rows(size[..., k], shape) for k in range(3))), hull=hull_of(corners, Numbering(*map(of_each, number)))
    )


def _solids(shapes: Shapes, kind: str, index: tuple[int, ...]) -> Solid:
    size = Vec3.of(take(shapes.parameter("shape_size"), index))
    if kind == "hull":
        vertex, number = _hull_numbers(shapes.topology, index)
        points = shapes.parameter("points")
        return Solid(size, hull=hull_of(Vec3(*(points[..., k][vertex] for k in range(3))), number))
    if kind == "heightfield":
        start, stop = shapes.topology.shape_points[index[0]]
        grid, window = shapes.topology.shape_grid[index[0]], shapes.topology.shape_window[index[0]]
        height = shapes.parameter("points")[start:stop, None, ..., 2]  # of each vertex, the same for all items
        return Solid(size, ground=HeightGrid(height, grid, window))
    return Solid(size)


@functools.lru_cache(maxsize=1024)
def _hull_numbers(topology: Topology, index: tuple[int, ...]) -> tuple[np.ndarray, Numbering]:
    """Vertex indices in `Model.points` (vertices, n) and numbering of some hulls, padded to the largest."""
    numberings = [numbering(topology.shape_faces[k]) for k in index]
    return concatenate_hulls(numberings, [topology.shape_points[k][0] for k in index])
