"""Rays and surfaces made of triangles: meshes that are not convex, and heightfields with the walls at their ends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Scalar, Vec3
from ..geometry.near import Z_AXIS, direction, pick, select

Crossing = tuple[Scalar, Vec3]  # t [m] >= 0, inf for none, and the normal on the outer side


def triangles(a: Vec3, b: Vec3, c: Vec3, o: Vec3, d: Vec3) -> Crossing:
    """The first hit of triangles (n, *batch), from either side; the normals follow the order of their corners.

    Moeller and Trumbore (1997), with the determinant's sign taken out instead of its inverse multiplied in: a corner
    or an edge that two triangles share is decided by the same products, so that no ray passes between them.
    """
    u, v = b - a, c - a
    normal = u.cross(v)
    det = -normal.dot(d)
    s = jnp.where(det < 0, -1.0, 1.0).astype(det.dtype)
    p, q, r = a - o, b - o, c - o
    beta, gamma, alpha = (s * d.dot(x.cross(y)) for x, y in ((r, p), (p, q), (q, r)))
    # all three of one sign: the line passes through
    sides = jnp.minimum(jnp.minimum(alpha, beta), gamma) >= 0
    other = jnp.maximum(jnp.maximum(alpha, beta), gamma) <= 0
    meets = (sides | other) & (det != 0)
    t = safe_div(-normal.dot(p), det, det != 0)
    t = jnp.where(meets & (t >= 0), t, jnp.inf)
    return jnp.min(t, 0), direction(pick(-t, normal), Z_AXIS)


def heightfield(height: Array, grid: tuple[int, int], cell: tuple[Scalar, Scalar], o: Vec3, d: Vec3) -> Crossing:
    """The first hit of a heightfield.  height (nx * ny, *batch or ones), row by row [m]; cell: its two widths, (*batch
    or ones) [m]; o, d (*batch)."""
    nx, ny = grid
    dx, dy = cell
    numbers = np.arange(nx * ny).reshape(grid)
    own = (1,) * (height.ndim - 1)
    row, column = (np.broadcast_to(x, grid).reshape(-1, *own) for x in np.ogrid[:nx, :ny])
    x, y = (row - (nx - 1) / 2) * dx, (column - (ny - 1) / 2) * dy
    points = Vec3(*(jnp.broadcast_to(jnp.asarray(w, height.dtype), height.shape) for w in (x, y, height)))
    # each cell is cut from its first vertex to the opposite one
    a, b, c, e = numbers[:-1, :-1], numbers[1:, :-1], numbers[1:, 1:], numbers[:-1, 1:]
    corners = (np.concatenate([k.ravel() for k in ks]) for ks in ((a, a), (b, c), (c, e)))
    first, second, third = (jax.tree.map(lambda w, k=k: w[k], points) for k in corners)
    top = triangles(first, second, third, o, d)
    half = (nx - 1) / 2 * dx, (ny - 1) / 2 * dy
    lines = (numbers[0], numbers[-1], numbers[:, 0], numbers[:, -1])
    for wall, line in enumerate(lines):
        hit = _wall(height[line], wall // 2, wall % 2 * 2 - 1, half, cell, o, d)
        top = jnp.minimum(top[0], hit[0]), select(hit[0] < top[0], hit[1], top[1])
    return top


def _wall(
    height: Array, axis: int, side: int, half: tuple[Scalar, Scalar], cell: tuple[Scalar, Scalar], o: Vec3, d: Vec3
) -> Crossing:
    """The first hit of one of the four vertical walls below the edge of the ground.  height (n, *batch or ones)."""
    along = 1 - axis
    rate = d.xyz[axis]
    t = safe_div(side * half[axis] - o.xyz[axis], rate, rate != 0)
    top_hit = o + d * t
    at = jnp.clip(top_hit.xyz[along] / cell[along] + (len(height) - 1) / 2, 0, len(height) - 1)
    k = jnp.clip(jnp.floor(at), 0, len(height) - 2).astype(jnp.int32)
    height = jnp.broadcast_to(height, (len(height), *k.shape))
    low, high = (jnp.take_along_axis(height, (k + j)[None], 0)[0] for j in (0, 1))
    below = top_hit.z < low + (at - k) * (high - low)
    there = (rate != 0) & (t >= 0) & below & (jnp.abs(top_hit.xyz[along]) <= half[along])
    out = [jnp.zeros_like(t)] * 3
    out[axis] = jnp.full_like(t, side)
    return jnp.where(there, t, jnp.inf), Vec3(*out)
