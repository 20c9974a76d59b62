"""The narrow phase: the table of kernels, and the rows of all pairs of a group.

KERNELS holds every pair of kinds once, in the order of KINDS; a kernel's rows are the points it may return. Meshes
come as hulls; a mesh that is not one (`convex="none"`) has no kernel.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ..engine.algebra.fence import compute_once, lane_programs
from ..engine.algebra.spatial import Transform
from ..engine.algebra.vec3 import Vec3
from .geometry.growth import growth
from .geometry.near import Near, select
from .geometry.solid import Solid
from .pairs import box, heightfield, plane, polytope, round
from .pairs.convex import convex
from .posed import Some

Run = Callable[[Solid, Solid, Transform], tuple[Near, ...]]


class Kernel(NamedTuple):
    """run: (a, b, pose of B in A's frame) -> rows, the closest first.  rows: their number.
    searches: whether it is expensive and not differentiated itself; it does not run for pairs that are far apart.
    foot: whether A's point is the foot of B's on A and moves with it; else it is fixed to A's surface."""

    run: Run
    rows: int
    searches: bool = False
    foot: bool = False


KINDS = ("plane", "heightfield", "sphere", "capsule", "box", "cylinder", "ellipsoid", "hull", "mesh")


Sized = tuple[Vec3, Transform]  # size and pose of shapes


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _attach(kinds: tuple[str, str], row: Near, a: Sized, b: Sized) -> Near:
    """Give a row that was searched for, of shapes a and b, the derivative of points fixed to their surfaces.

    The gap is the largest separation over all normals, and the smallest over all points, so its derivative is that
    of fixed points along a fixed normal (Danskin, 1966). The normal is fixed to A.
    """
    return row


@_attach.defjvp
def _attached_derivative(
    kinds: tuple[str, str], primals: tuple[Near, Sized, Sized], tangents: tuple[Near, Sized, Sized]
) -> tuple[Near, Near]:
    row, a, b = primals
    _, da, db = tangents
    there = _attach(kinds, *primals)
    point_a = _moving_point(kinds[0], row.a, -row.normal, a, da)
    point_b = _moving_point(kinds[1], row.b, row.normal, b, db)
    normal_rate = da[1].R @ jax.lax.stop_gradient(a[1].R.T @ row.normal)
    rate = normal_rate.dot(there.a - there.b) + there.normal.dot(point_a - point_b)
    if KERNELS[kinds].foot:
        point_a = point_b + there.normal * rate + normal_rate * there.gap
    return there, Near(rate, normal_rate, point_a, point_b)


def _moving_point(kind: str, point: Vec3, out: Vec3, shape: Sized, rates: Sized) -> Vec3:
    """Return the velocity of a point of a shape's surface, all in the world."""
    (size, pose), (d_size, d_pose) = shape, rates
    own, out, size, R = jax.lax.stop_gradient((pose.R.T @ (point - pose.p), pose.R.T @ out, size, pose.R))
    return d_pose.R @ own + d_pose.p + R @ growth(kind, size, d_size, own, out)


KERNELS: dict[tuple[str, str], Kernel] = {
    ("plane", "sphere"): Kernel(plane.plane_sphere, 1),
    ("plane", "capsule"): Kernel(plane.plane_capsule, 2),
    ("plane", "box"): Kernel(plane.plane_box, 4),
    ("plane", "cylinder"): Kernel(plane.plane_cylinder, 4),
    ("plane", "ellipsoid"): Kernel(plane.plane_ellipsoid, 1),
    ("plane", "hull"): Kernel(plane.plane_hull, 4, searches=True, foot=True),
    ("heightfield", "sphere"): Kernel(heightfield.heightfield("sphere"), 4, searches=True),
    ("heightfield", "capsule"): Kernel(heightfield.heightfield("capsule"), 4, searches=True),
    ("heightfield", "box"): Kernel(heightfield.heightfield("box"), 4, searches=True),
    ("heightfield", "cylinder"): Kernel(heightfield.heightfield("cylinder"), 4, searches=True),
    ("heightfield", "ellipsoid"): Kernel(heightfield.heightfield("ellipsoid"), 4, searches=True),
    ("heightfield", "hull"): Kernel(heightfield.heightfield("hull"), 4, searches=True),
    ("sphere", "sphere"): Kernel(round.sphere_sphere, 1),
    ("sphere", "capsule"): Kernel(round.sphere_capsule, 1),
    ("sphere", "box"): Kernel(box.sphere_box, 1),
    ("sphere", "cylinder"): Kernel(round.sphere_cylinder, 1),
    ("sphere", "ellipsoid"): Kernel(convex("sphere", "ellipsoid"), 1, searches=True),
    ("sphere", "hull"): Kernel(polytope.sphere_hull, 1, searches=True),
    ("capsule", "capsule"): Kernel(round.capsule_capsule, 2),
    ("capsule", "box"): Kernel(box.capsule_box, 4, searches=True),
    ("capsule", "cylinder"): Kernel(convex("capsule", "cylinder"), 4, searches=True),
    ("capsule", "ellipsoid"): Kernel(convex("capsule", "ellipsoid"), 1, searches=True),
    ("capsule", "hull"): Kernel(polytope.capsule_hull, 4, searches=True),
    ("box", "box"): Kernel(box.box_box, 4, searches=True),
    ("box", "cylinder"): Kernel(convex("box", "cylinder"), 4, searches=True),
    ("box", "ellipsoid"): Kernel(convex("box", "ellipsoid"), 1, searches=True),
    ("box", "hull"): Kernel(polytope.box_hull, 4, searches=True),
    ("cylinder", "cylinder"): Kernel(convex("cylinder", "cylinder"), 4, searches=True),
    ("cylinder", "ellipsoid"): Kernel(convex("cylinder", "ellipsoid"), 1, searches=True),
    ("cylinder", "hull"): Kernel(convex("cylinder", "hull"), 4, searches=True),
    ("ellipsoid", "ellipsoid"): Kernel(convex("ellipsoid", "ellipsoid"), 1, searches=True),
    ("ellipsoid", "hull"): Kernel(convex("ellipsoid", "hull"), 1, searches=True),
    ("hull", "hull"): Kernel(polytope.hull_hull, 4, searches=True),
}


TILE, SMALLEST = 512, 64  # pairs


def kernel_key(kind_a: str, kind_b: str) -> tuple[tuple[str, str], bool]:
    """The key of KERNELS for two kinds, and whether A and B must be exchanged for it."""
    swap = KINDS.index(kind_a) > KINDS.index(kind_b)
    return ((kind_b, kind_a) if swap else (kind_a, kind_b)), swap


def meet(kinds: tuple[str, str], a: Some, b: Some, swapped: ArrayLike | None = None) -> tuple[Near, ...]:
    """Rows of pairs of shapes of two kinds, in the world.

    kinds: a key of KERNELS, and a, b in its order; swapped: where b is the pair's shape A; None: nowhere.
    """
    if kinds not in KERNELS:
        fix = 'use backend="fcl", or Mesh(..., convex="hull" or "pieces")'
        raise ValueError(f"the device detector has no kernel for a {kinds[0]} and a {kinds[1]}: {fix}")
    if KERNELS[kinds].searches:
        sized = ((x.solid.size, x.pose) for x in (a, b))
        return swap_sides(attach_to_surfaces(kinds, search(kinds, a, b), *sized), swapped)
    return swap_sides(_in_world(KERNELS[kinds].run, a, b), swapped)


def search(kinds: tuple[str, str], a: Some, b: Some) -> tuple[Near, ...]:
    """Rows, in the world, of a kernel that searches; a is of the first kind. They have no derivative."""
    return _in_world(KERNELS[kinds].run, *jax.lax.stop_gradient((a, b)))


def attach_to_surfaces(kinds: tuple[str, str], rows: tuple[Near, ...], a: Sized, b: Sized) -> tuple[Near, ...]:
    """Return the same rows with their derivatives by the sizes and poses of the shapes."""
    return tuple(_attach(kinds, row, a, b) for row in rows)


def swap_sides(rows: tuple[Near, ...], swapped: ArrayLike | None) -> tuple[Near, ...]:
    """Exchange A and B in rows where swapped (n, *batch or ones); None: nowhere."""
    return rows if swapped is None else tuple(select(swapped, row.flip(), row) for row in rows)


def _in_world(run: Run, a: Some, b: Some) -> tuple[Near, ...]:
    R, p = a.pose.R, a.pose.p
    X = compute_once(Transform(R.T @ b.pose.R, R.T @ (b.pose.p - p)))
    rows = compute_once(_in_tiles(run, a.solid, b.solid, X))
    return tuple(Near(row.gap, R @ row.normal, R @ row.a + p, R @ row.b + p) for row in rows)


def _in_tiles(run: Run, a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    """Run the kernel over some hundred pairs at a time, on a CPU: their values stay in its cache (twice as fast)."""
    *front, lanes = X.p.x.shape
    tile = max(SMALLEST, TILE // math.prod(front))
    if not lane_programs() or lanes < 2 * tile:
        return run(a, b, X)
    leaves, tree = jax.tree.flatten((a, b, X))
    of_lanes = [x.shape[-1:] == (lanes,) for x in leaves]
    count = -(-lanes // tile)

    def cut(x: Array) -> Array:
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, count * tile - lanes)], mode="edge")
        return jnp.moveaxis(x.reshape(*x.shape[:-1], count, tile), -2, 0)

    def one(tiles: list[Array]) -> tuple[Near, ...]:
        mine = iter(tiles)
        return run(*jax.tree.unflatten(tree, [next(mine) if on else x for on, x in zip(of_lanes, leaves, strict=True)]))

    def concatenate(x: Array) -> Array:
        x = jnp.moveaxis(x, 0, -2)
        return x.reshape(*x.shape[:-2], count * tile)[..., :lanes]

    rows = jax.lax.map(one, [cut(x) for on, x in zip(of_lanes, leaves, strict=True) if on])
    return jax.tree.map(concatenate, rows)
