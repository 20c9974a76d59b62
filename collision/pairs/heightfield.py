"""A heightfield (A) with all other shapes, column by column.

Each cell is two triangles, cut from vertex (i, j) to (i+1, j+1); the ground below a triangle is a column, a prism
down to a floor far below B. B meets the columns of a window of cells about it, whose size the scene's compilation
chose to reach half a cell beyond the largest body that may touch. The gap is the smallest of any column's, and up
to four of all columns' points are kept.

The gap is exact up to half a cell. Columns that are farther away, by the boxes about them and about B, are not
examined; beyond half a cell the gap is a lower bound: the distance of the nearest box, or half a cell if one is
nearer. Nothing is examined beyond the window, so the bound is at most the distance to its edge, or B's height above
the highest vertex. If B is deeper than its own inradius, it may be pushed out of a column sideways.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.bounded import map_first
from ...engine.algebra.fence import compute_once, lane_programs
from ...engine.algebra.spatial import Transform
from ...engine.algebra.vec3 import Scalar, Vec3
from ...engine.compaction import compact
from ..geometry.hull import PRISM, hull_of
from ..geometry.manifold import spread
from ..geometry.near import AXES, Z_AXIS, Near, at, direction, only_where, select
from ..geometry.solid import SUPPORT, Solid, radius
from .convex import convex
from .polytope import box_hull, capsule_hull, hull_hull, sphere_hull

Kernel = Callable[[Solid, Solid, Transform], tuple[Near, ...]]

# of all lengths: a point this little below its triangle is not on a side. Rounding is less, but a quaternion that has
# drifted, or is given with seven digits, stretches, and every column's point might seem to be on a side
SIDE = 1e-6
FLUSH = 64  # units of rounding: what rises less above a body's lowest point is no side
ROWS = 4  # of a contact, at most
VECTOR = 64  # bytes

COLUMN: dict[str, Kernel] = {
    "sphere": sphere_hull,
    "capsule": capsule_hull,
    "box": box_hull,
    "cylinder": convex("cylinder", "hull"),
    "ellipsoid": convex("ellipsoid", "hull"),
    "hull": hull_hull,
}


@functools.cache
def heightfield(kind: str) -> Kernel:
    """The kernel of a heightfield and another kind."""

    def kernel(a: Solid, b: Solid, X: Transform) -> tuple[Near, ...]:
        lo, hi = _bounding_box(kind, b, X)
        corners, promised = _columns(a, lo, hi), _window_clearance(a, lo, hi)

        def meet(b: Solid, X: Transform, size: Vec3, corners: Vec3) -> tuple[Near, ...]:
            """Contact with one column for each item."""
            of_prism = COLUMN[kind](b, Solid(size, hull_of(corners, PRISM)), X.inverse())
            of_field = [Near(r.gap, X.R @ -r.normal, X.R @ r.b + X.p, X.R @ r.a + X.p) for r in of_prism]
            rows = [_on_top(a.ground.grid, size, row, corners) for row in of_field]
            return _slide_over(rows, functools.partial(_lowest, kind, b, X), corners)

        apart, half = _apart(corners, lo, hi), jnp.minimum(a.size.x, a.size.y) / 2
        promised = jnp.minimum(promised, jnp.maximum(apart, half).min(0))  # no jump where a column comes near
        if lane_programs() and X.p.x.ndim == 1:
            of_columns = _of_near(meet, apart <= half, (b, X, a.size), corners)
        else:
            of_columns = jax.vmap(meet, in_axes=(None, None, None, 1))(b, X, a.size, corners)
        rows = jax.tree.map(lambda *x: jnp.concatenate(x), *of_columns)
        sides = _sides(rows) if kind == "sphere" else spread(rows, at(jnp.argmin(rows.gap, 0), rows.normal))
        first, *others = sides
        return first._replace(gap=jnp.minimum(first.gap, promised)), *others

    return kernel


def _apart(corners: Vec3, lo: Vec3, hi: Vec3) -> Scalar:
    """Lower bound (columns, *items) of each column's distance from B, from the boxes about both [m]."""
    tops = jax.tree.map(lambda x: x[:3], corners)
    left, right = (jax.tree.map(lambda x, end=end: end(x, 0), tops) for end in (jnp.min, jnp.max))
    sides = lo.x - right.x, left.x - hi.x, lo.y - right.y, left.y - hi.y, lo.z - right.z
    return functools.reduce(jnp.maximum, sides)


def _of_near(
    meet: Callable[..., tuple[Near, ...]], near: Array, items: tuple[Solid, Transform, Vec3], corners: Vec3
) -> tuple[Near, ...]:
    """Rows (columns, n) of the columns that are near (columns, n) their item, a vector of them at a time; the others
    have no row. items: leaves (..., n), or ones for all."""
    n, flat = near.shape[1], near.reshape(-1)
    each = VECTOR // corners.x.dtype.itemsize
    order, real = compact(flat, -(-len(flat) // each) * each)
    order = jnp.where(real, order, order[:1])  # padding repeats a column: any other might take longer
    tops = jax.tree.map(lambda x: x.reshape(len(x), -1), corners)

    def of_item(x: Array, index: Array) -> Array:
        if x.shape[-1] > 1:
            return jnp.take(x, index % n, axis=-1)
        return jnp.broadcast_to(x, (*x.shape[:-1], each)) if jnp.issubdtype(x.dtype, jnp.floating) else x

    def some(given: tuple[tuple[Solid, Transform, Vec3], Vec3], index: Array) -> tuple[Near, ...]:
        items, tops = given
        own = jax.tree.map(lambda x: of_item(x, index), items)
        return meet(*own, jax.tree.map(lambda x: jnp.take(x, index, axis=-1), tops))

    compacted = map_first(each, some, flat.sum(dtype=jnp.int32), (items, tops), order)
    slots = jnp.maximum(jnp.cumsum(flat, dtype=jnp.int32) - 1, 0)
    rows = jax.tree.map(lambda x: jnp.take(x, slots).reshape(near.shape), compacted)
    none = jnp.zeros_like(corners.x[0])
    nowhere = Near(none + jnp.inf, Vec3(none, none, none + 1), *[Vec3(none, none, none)] * 2)
    return tuple(select(near, row, nowhere) for row in rows)


def _on_top(grid: tuple[int, int], cell: Vec3, row: Near, corners: Vec3) -> Near:
    """The row of each column; none where B is apart and the point is on a side
    within the grid, which other columns cover."""
    top, second, third = (jax.tree.map(lambda x, k=k: x[k], corners) for k in range(3))
    up = direction((second - top).cross(third - top), Z_AXIS)
    size = jnp.abs(second.x - third.x) + jnp.abs(second.y - third.y) + jnp.abs(second.z - third.z)
    rough = jnp.maximum(1e4 * jnp.finfo(size.dtype).eps * size, SIDE * (size + jnp.abs(row.a.x) + jnp.abs(row.a.y)))
    covered = (row.a - top).dot(up) < -rough
    for x, n, d in zip((row.a.x, row.a.y), grid, (cell.x, cell.y), strict=True):
        covered &= jnp.abs(x) < (n - 1) / 2 * d - rough
    return only_where(~(covered & (row.gap > 0)), row)


def _lowest(kind: str, b: Solid, X: Transform, up: Vec3) -> Scalar:
    """B's least coordinate along `up`, in A's axes [m]."""
    return (X.R @ SUPPORT[kind](b, compute_once(X.R.T @ -up)) + X.p).dot(up) - radius(kind, b)


def _slide_over(rows: Sequence[Near], lowest: Callable[[Vec3], Scalar], corners: Vec3) -> tuple[Near, ...]:
    """The rows of each column; one along its triangle's normal where B touches a side but lies above the triangle.

    A body that slides over flat ground is a little in it, and would strike the side of the next column.
    """
    top, second, third = (jax.tree.map(lambda x, k=k: x[k], corners) for k in range(3))
    up = direction((second - top).cross(third - top), Z_AXIS)
    first, *others = rows
    size = jnp.abs(second.x - third.x) + jnp.abs(second.y - third.y) + jnp.abs(second.z - third.z)
    rough = max(FLUSH * jnp.finfo(size.dtype).eps, SIDE) * (size + jnp.abs(first.a.x) + jnp.abs(first.a.y))
    askew = first.normal.dot(up) > SIDE - 1  # normals are from B to the ground
    over = askew & (jnp.abs(first.gap) <= rough) & (lowest(up) - top.dot(up) >= -rough)
    gap = (first.b - top).dot(up)
    flat = Near(gap, -up, first.b - up * gap, first.b)
    return select(over, flat, first), *(only_where(~over, row) for row in others)


def _sides(rows: Near) -> tuple[Near, ...]:
    """A ball's nearest row, and then repeatedly the nearest one whose ground point is above the planes of all before,
    as in a valley. The others are of an edge shared with those, and would push the ball a little askew."""
    sides = []
    for _ in range(ROWS):
        side = at(jnp.argmin(rows.gap, 0), rows)
        rough = SIDE * (jnp.abs(side.a.x) + jnp.abs(side.a.y) + jnp.abs(side.a.z) + jnp.abs(side.gap))
        rows = only_where((side.a - rows.a).dot(side.normal) > rough, rows)
        sides.append(side)
    return tuple(sides)


def _bounding_box(kind: str, b: Solid, X: Transform) -> tuple[Vec3, Vec3]:
    """Lowest and highest coordinates of B in A's axes [m]."""
    ends = []
    for axis in AXES:
        n = compute_once(X.R.T @ axis)
        ends.append([SUPPORT[kind](b, way).dot(n) for way in (-n, n)])
    r = Vec3(*[radius(kind, b)] * 3)
    lo, hi = (Vec3(*(end[k] for end in ends)) + X.p for k in (0, 1))
    return lo - r, hi + r


def _columns(a: Solid, lo: Vec3, hi: Vec3) -> Vec3:
    """Corners of the columns about B, (6, columns, *items): the triangle's three, and those of the floor below."""
    ground, dx, dy = a.ground, a.size.x, a.size.y
    nx, ny = ground.grid
    wx, wy = ground.window
    i = _first_cell((lo.x + hi.x) / 2, dx, nx, wx)
    j = _first_cell((lo.y + hi.y) / 2, dy, ny, wy)
    floor = jnp.minimum(lo.z, jnp.min(ground.height, 0)) - 2 * (hi.z - lo.z)

    def vertex(u: int, v: int) -> Vec3:
        """Vertices (i + u, j + v) of all cells of the window, (cells, *items)."""
        own = (1,) * i.ndim
        m, k = (np.repeat(np.arange(wx), wy), np.tile(np.arange(wy), wx))
        row, column = i + (m + u).reshape(-1, *own), j + (k + v).reshape(-1, *own)
        x, y = (row - (nx - 1) / 2).astype(dx.dtype) * dx, (column - (ny - 1) / 2).astype(dx.dtype) * dy
        return Vec3(x, y, _looked_up(ground.height, row * ny + column))

    p00, p10, p11, p01 = vertex(0, 0), vertex(1, 0), vertex(1, 1), vertex(0, 1)
    tops = [jax.tree.map(lambda *x: jnp.concatenate(x), *both) for both in ((p00, p00), (p10, p11), (p11, p01))]
    bottoms = [Vec3(p.x, p.y, jnp.broadcast_to(floor, p.x.shape)) for p in tops]
    return jax.tree.map(lambda *x: jnp.stack(x), *tops, *bottoms)


def _window_clearance(a: Solid, lo: Vec3, hi: Vec3) -> Scalar:
    """Lower bound of B's distance from everything outside the window [m]; negative for a body that outgrew the window,
    unless it is above all vertices."""
    room = jnp.full_like(lo.z, jnp.inf)
    for n, window, d, width in zip(a.ground.grid, a.ground.window, (a.size.x, a.size.y), (hi - lo).xyz, strict=False):
        if window < n - 1:
            room = jnp.minimum(room, ((window - 1) * d - width) / 2)
    return jnp.maximum(room, lo.z - jnp.max(a.ground.height, 0))


def _first_cell(middle: Scalar, d: Scalar, n: int, window: int) -> Array:
    """Index of the window's first cell, such that its middle is the cell or the edge nearest to B's."""
    cell = jnp.round(middle / d + (n - 1) / 2 - window / 2)
    return jnp.clip(jnp.nan_to_num(cell), 0, n - 1 - window).astype(jnp.int32)


def _looked_up(height: Scalar, index: Array) -> Scalar:
    """height (vertices, *items or ones) at index (cells, *items)."""
    if height.size == height.shape[0]:
        return jnp.take(height.reshape(-1), index)
    height = jnp.broadcast_to(height, (height.shape[0], *index.shape[1:]))
    return jnp.take_along_axis(height, index, 0)
