"""The narrow phase: the table of kernels, and the rows of all pairs of a group.

KERNELS holds every pair of kinds once, in the order of KINDS; a kernel's rows are the points it may return. Meshes
come as hulls; a mesh that is none (`convex="none"`) has no kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..engine.algebra.fence import available, settled
from ..engine.algebra.spatial import Transform
from .geometry.near import Near, select
from .geometry.solid import Solid
from .pairs import box, heightfield, plane, polytope, round
from .pairs.convex import convex
from .posed import Some

Run = Callable[[Solid, Solid, Transform], tuple[Near, ...]]


class Kernel(NamedTuple):
    """run: (a, b, pose of B in A's frame) -> rows, the closest first.  rows: how many."""

    run: Run
    rows: int


KINDS = ("plane", "heightfield", "sphere", "capsule", "box", "cylinder", "ellipsoid", "hull", "mesh")


def _solved(run: Run) -> Run:
    """A kernel that searches: not differentiated; what it found is carried along by the two bodies instead.

    The gap is the largest separation over all normals, and the smallest over all points, so its derivative is that
    of fixed points along a fixed normal (Danskin, 1966). The normal and the points of A are fixed to A.
    """

    def carried(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
        a0, b0, X0 = jax.lax.stop_gradient((a, b, X))

        def carry(row: Near) -> Near:
            moved = X.R @ (X0.R.T @ (row.b - X0.p)) + X.p - row.b  # zero, but for its derivative
            return row._replace(gap=row.gap - row.normal.dot(moved), b=row.b + moved)

        return tuple(carry(row) for row in run(a0, b0, X0))

    return carried


KERNELS: dict[tuple[str, str], Kernel] = {
    ("plane", "sphere"): Kernel(plane.plane_sphere, 1),
    ("plane", "capsule"): Kernel(plane.plane_capsule, 2),
    ("plane", "box"): Kernel(plane.plane_box, 4),
    ("plane", "cylinder"): Kernel(plane.plane_cylinder, 4),
    ("plane", "ellipsoid"): Kernel(plane.plane_ellipsoid, 1),
    ("plane", "hull"): Kernel(plane.plane_hull, 4),
    ("heightfield", "sphere"): Kernel(_solved(heightfield.heightfield("sphere")), 4),
    ("heightfield", "capsule"): Kernel(_solved(heightfield.heightfield("capsule")), 4),
    ("heightfield", "box"): Kernel(_solved(heightfield.heightfield("box")), 4),
    ("heightfield", "cylinder"): Kernel(_solved(heightfield.heightfield("cylinder")), 4),
    ("heightfield", "ellipsoid"): Kernel(_solved(heightfield.heightfield("ellipsoid")), 4),
    ("heightfield", "hull"): Kernel(_solved(heightfield.heightfield("hull")), 4),
    ("sphere", "sphere"): Kernel(round.sphere_sphere, 1),
    ("sphere", "capsule"): Kernel(round.sphere_capsule, 1),
    ("sphere", "box"): Kernel(box.sphere_box, 1),
    ("sphere", "cylinder"): Kernel(_solved(convex("sphere", "cylinder")), 1),
    ("sphere", "ellipsoid"): Kernel(_solved(convex("sphere", "ellipsoid")), 1),
    ("sphere", "hull"): Kernel(_solved(polytope.sphere_hull), 1),
    ("capsule", "capsule"): Kernel(round.capsule_capsule, 2),
    ("capsule", "box"): Kernel(_solved(box.capsule_box), 4),
    ("capsule", "cylinder"): Kernel(_solved(convex("capsule", "cylinder")), 4),
    ("capsule", "ellipsoid"): Kernel(_solved(convex("capsule", "ellipsoid")), 1),
    ("capsule", "hull"): Kernel(_solved(polytope.capsule_hull), 4),
    ("box", "box"): Kernel(_solved(box.box_box), 4),
    ("box", "cylinder"): Kernel(_solved(convex("box", "cylinder")), 4),
    ("box", "ellipsoid"): Kernel(_solved(convex("box", "ellipsoid")), 1),
    ("box", "hull"): Kernel(_solved(polytope.box_hull), 4),
    ("cylinder", "cylinder"): Kernel(_solved(convex("cylinder", "cylinder")), 4),
    ("cylinder", "ellipsoid"): Kernel(_solved(convex("cylinder", "ellipsoid")), 1),
    ("cylinder", "hull"): Kernel(_solved(convex("cylinder", "hull")), 4),
    ("ellipsoid", "ellipsoid"): Kernel(_solved(convex("ellipsoid", "ellipsoid")), 1),
    ("ellipsoid", "hull"): Kernel(_solved(convex("ellipsoid", "hull")), 1),
    ("hull", "hull"): Kernel(_solved(polytope.hull_hull), 4),
}


TILE, SMALLEST = 512, 64  # pairs


def ordered(kind_a: str, kind_b: str) -> tuple[tuple[str, str], bool]:
    """The key of KERNELS for two kinds, and whether A and B must be exchanged for it."""
    swap = KINDS.index(kind_a) > KINDS.index(kind_b)
    return ((kind_b, kind_a) if swap else (kind_a, kind_b)), swap


def meet(kinds: tuple[str, str], a: Some, b: Some, swapped: Any = None) -> tuple[Near, ...]:
    """Rows of pairs of shapes of two kinds, in the world.

    kinds: a key of KERNELS, and a, b in its order; swapped: where b is the pair's shape A, if anywhere.
    """
    if kinds not in KERNELS:
        fix = 'use backend="fcl", or Mesh(..., convex="hull" or "pieces")'
        raise ValueError(f"the device detector has no kernel for a {kinds[0]} and a {kinds[1]}: {fix}")
    R, p = a.pose.R, a.pose.p
    X = settled(Transform(R.T @ b.pose.R, R.T @ (b.pose.p - p)))
    rows = settled(_in_tiles(KERNELS[kinds].run, a.solid, b.solid, X))
    rows = tuple(Near(row.gap, R @ row.normal, R @ row.a + p, R @ row.b + p) for row in rows)
    return rows if swapped is None else tuple(select(swapped, row.mirrored(), row) for row in rows)


def _in_tiles(run: Run, a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
    """The kernel over some hundred pairs at a time, on a CPU: what they need stays in its cache (twice as fast)."""
    *front, lanes = X.p.x.shape
    tile = max(SMALLEST, TILE // math.prod(front))
    if not available() or lanes < 2 * tile:
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

    def joined(x: Array) -> Array:
        x = jnp.moveaxis(x, 0, -2)
        return x.reshape(*x.shape[:-2], count * tile)[..., :lanes]

    rows = jax.lax.map(one, [cut(x) for on, x in zip(of_lanes, leaves, strict=True) if on])
    return jax.tree.map(joined, rows)
