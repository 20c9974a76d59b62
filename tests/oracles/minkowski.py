"""Exact signed gaps between convex solids from their Minkowski difference M = A - B, in numpy and scipy.

With n the unit normal from B to A, g(n) = min(a . n over A) - max(b . n over B) bounds the gap from below for every n,
and the gap is the largest g, on both sides of contact: the distance while apart, minus the depth when overlapping.
Below f = -n and H(f) = max(m . f over M) = -g: the gap is minus the smallest H over unit f.

Every solid of the table is a sum of parts: corners (a polytope, a segment, a point), a round part (an ellipsoid or a
disc, support |f L|) and a ball. Without round parts the answer is the distance of the origin from a polytope,
found exactly; with them H is searched: its smallest value lies at a facet normal, on the great circle of an edge, at
the axis of a disc, or where H is smooth, and each of these is searched on its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

Array = Any
BOX = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
AXIS = np.array([[0, 0, -1.0], [0, 0, 1.0]])


@dataclass(frozen=True)
class Solid:
    """A shape in the world: kind, size (3,) and points (k, 3) [m] as in Model; position (3,) [m], quaternion (4,)."""

    kind: str
    size: Array
    points: Array
    position: Array
    quaternion: Array

    @cached_property
    def rotation(self) -> Array:
        """(3, 3) from its own axes to the world's."""
        return Rotation.from_quat(self.quaternion, scalar_first=True).as_matrix()

    def to_world(self, x: Array) -> Array:
        return np.asarray(x) @ self.rotation.T + self.position

    def to_local(self, x: Array) -> Array:
        return (np.asarray(x) - self.position) @ self.rotation

    @cached_property
    def parts(self) -> tuple[Array, Array | None, float]:
        """corners (k, 3) in the world [m], L (3, 2 or 3) of the round part [m] or None, radius of the ball [m].

        L holds the semiaxes of the ellipsoid or disc, world axes, so that its support is |f L|.
        """
        corners, L, ball = np.zeros((1, 3)), None, 0.0
        if self.kind in ("sphere", "capsule"):
            ball = float(self.size[0])
        if self.kind in ("capsule", "cylinder"):
            corners = AXIS * self.size[1]
        if self.kind == "cylinder":
            L = self.rotation[:, :2] * self.size[0]
        if self.kind == "ellipsoid":
            L = self.rotation * self.size
        if self.kind == "box":
            corners = BOX * self.size
        if self.kind == "hull":
            corners = self.points
        return self.to_world(corners), L, ball

    def discs(self) -> Array:
        """(k, 3) axes of its discs."""
        return self.rotation[:, 2:].T if self.kind == "cylinder" else np.zeros((0, 3))

    def support(self, f: Array) -> Array:
        """max(x . f) over the solid, for directions f (..., 3) [m]."""
        corners, L, ball = self.parts
        reach = (f @ corners.T).max(-1)
        if L is not None:
            reach = reach + np.linalg.norm(f @ L, axis=-1)
        return reach + ball * np.linalg.norm(f, axis=-1) if ball else reach


def separation(a: Solid, b: Solid, n: Array) -> Array:
    """g(n): how far A lies in front of B along unit n (..., 3), never more than the gap [m]."""
    if b.kind == "plane":  # all of the halfspace lies behind its own normal, and before no other
        along = n @ b.rotation[:, 2]
        return np.where(along > 1 - 1e-9, -a.support(-n) - b.position @ b.rotation[:, 2], -np.inf)
    if a.kind == "plane":
        return separation(b, a, -n)
    return -a.support(-n) - b.support(n)


def gap(a: Solid, b: Solid, directions: int = 5_000) -> tuple[float, Array]:
    """Signed gap [m] of two convex solids (or one and a plane) and a normal from B to A where it is attained.

    directions: where the search for normals of smooth shapes starts; 20 000 found the same gaps, to 1e-14 m.
    """
    for near, plane, sign in ((a, b, 1.0), (b, a, -1.0)):
        if plane.kind == "plane":
            n = plane.rotation[:, 2]
            return float(-near.support(-n) - plane.position @ n), sign * n
    (A, LA, ra), (B, LB, rb) = a.parts, b.parts
    if LA is None and LB is None:
        distance, n = _polytopes(A, B)
        return distance - ra - rb, n
    return _search(a, b, directions)


def columns_gap(field: Solid, b: Solid, below: float = 4.0) -> float:
    """Signed gap of a convex solid above a heightfield to the nearest of its columns: the distance while apart [m].

    A column is a triangle of the surface with all that is below it, down to a depth [m]. In overlap its gap says how
    deep the solid is in one of them, which is not how deep it is in all of them.
    """
    z = field.points.reshape(int(field.size[2]), -1, 3)
    o, x, y, xy = z[:-1, :-1], z[1:, :-1], z[:-1, 1:], z[1:, 1:]
    triangles = np.concatenate([np.stack(t, 2).reshape(-1, 3, 3) for t in ((o, x, xy), (o, xy, y))])
    solids = [replace(field, kind="hull", points=np.concatenate([t, t - [0, 0, below]])) for t in triangles]
    some = fibonacci(400)
    least = np.array([separation(s, b, some).max() for s in solids])
    best = np.inf
    for k in np.argsort(least):  # none whose lower bound is above the best can be nearer
        if least[k] > best:
            break
        best = min(best, gap(solids[k], b, 2_000)[0])
    return best


def _polytopes(A: Array, B: Array) -> tuple[float, Array]:
    """Signed gap of conv(A) and conv(B), corners (k, 3) each [m], and its normal."""
    if len(A) <= 2 and len(B) <= 2:
        m = _between_segments(A, B)
        return float(np.linalg.norm(m)), _unit(m, A, B)
    M = (A[:, None] - B).reshape(-1, 3)
    middle = M.mean(0)
    hull = ConvexHull(M - middle)
    normals = hull.equations[:, :3]
    H = ((M @ normals.T).max(0)) / np.linalg.norm(normals, axis=1)
    deepest = int(np.argmin(H))
    if H[deepest] >= 0:
        return -float(H[deepest]), -normals[deepest]
    # apart: the nearest point is inside the facet whose plane is farthest, or else on an edge
    foot = normals[deepest] * H[deepest]
    if (normals @ foot <= H + 1e-13 * np.abs(M).max()).all():
        return -float(H[deepest]), -normals[deepest]
    s = hull.simplices
    edges = np.unique(np.sort(np.concatenate([s[:, :2], s[:, 1:], s[:, ::2]]), axis=1), axis=0)
    nearest = _nearest_on_segments(M[edges[:, 0]], M[edges[:, 1]])
    m = nearest[np.argmin(np.linalg.norm(nearest, axis=1))]
    return float(np.linalg.norm(m)), m / np.linalg.norm(m)


def _nearest_on_segments(p: Array, q: Array) -> Array:
    """Points (k, 3) of the segments from p to q nearest to the origin."""
    d = q - p
    t = np.clip(-(p * d).sum(-1) / np.maximum((d * d).sum(-1), 1e-300), 0, 1)
    return p + t[:, None] * d


def _between_segments(A: Array, B: Array) -> Array:
    """The shortest vector from a point or segment B to a point or segment A."""
    ends = [(A[:1] - B[i], A[-1:] - B[i]) for i in range(len(B))] + [
        (A[i] - B[:1], A[i] - B[-1:]) for i in range(len(A))
    ]
    found = [_nearest_on_segments(p, q)[0] for p, q in ends]
    u, v, w = A[-1] - A[0], B[-1] - B[0], A[0] - B[0]
    n = np.cross(u, v)
    if n @ n > 1e-24 * (u @ u) * (v @ v) > 0:  # where the two lines are nearest: w + s u - t v along n
        s, t, _ = np.linalg.solve(np.stack([u, -v, n], 1), -w)
        if 0 <= s <= 1 and 0 <= t <= 1:
            found.append(n * (w @ n) / (n @ n))
    return min(found, key=np.linalg.norm)


def _unit(m: Array, A: Array, B: Array) -> Array:
    """m made a unit vector, or any normal of the two segments where m is zero."""
    if np.linalg.norm(m) > 1e-300:
        return m / np.linalg.norm(m)
    _, _, axes = np.linalg.svd(np.stack([A[-1] - A[0], B[-1] - B[0]]))
    return axes[2]


def _search(a: Solid, b: Solid, directions: int) -> tuple[float, Array]:
    (A, _, _), (B, _, _) = a.parts, b.parts

    def H(f):
        return a.support(f) + b.support(-f)

    sphere = fibonacci(directions)
    edges = np.concatenate([_edges(A), _edges(B)])
    circles = _circles(edges)
    found = [_newton(a, b, H, _starts(sphere, H(sphere), 24)), _on_circles(H, *circles)]
    special = [_facets(A, B), a.discs(), b.discs()]
    found += [np.concatenate([f, -f]) for f in special if len(f)]
    f = np.concatenate(found)
    values = H(f)
    best = int(np.argmin(values))
    return -float(values[best]), -f[best]


def fibonacci(count: int) -> Array:
    """(count, 3) unit vectors spread evenly over the sphere."""
    i = np.arange(count) + 0.5
    z, turn = 1 - 2 * i / count, i * np.pi * (3 - np.sqrt(5))
    side = np.sqrt(1 - z * z)
    return np.stack([side * np.cos(turn), side * np.sin(turn), z], 1)


def _starts(f: Array, values: Array, count: int) -> Array:
    """The best directions, none within 0.1 rad of a better one."""
    order = np.argsort(values)[: len(f) // 4]
    chosen: list[int] = []
    free = np.ones(len(order), bool)
    while len(chosen) < count and free.any():
        k = order[np.argmax(free)]
        chosen.append(int(k))
        free &= f[order] @ f[k] < np.cos(0.1)
    return f[chosen]


def _newton(a: Solid, b: Solid, H: Any, f: Array) -> Array:
    """Newton's method for H on the sphere from each start (k, 3): the parts' supports have closed-form derivatives."""
    (A, LA, _), (B, LB, _) = a.parts, b.parts
    value = H(f)
    for _ in range(40):
        x = A[np.argmax(f @ A.T, 1)] - B[np.argmin(f @ B.T, 1)]
        second = np.zeros((len(f), 3, 3))
        for L in (LA, LB):
            if L is not None:
                Q = L @ L.T
                h = np.maximum(np.linalg.norm(f @ L, axis=1), 1e-15)[:, None]
                Qf = f @ Q
                x = x + Qf / h
                second += (Q - Qf[:, :, None] * Qf[:, None] / h[:, :, None] ** 2) / h[:, :, None]
        along = (x * f).sum(1)  # a ball adds the same to H everywhere, so nothing to its slope on the sphere
        slope = x - along[:, None] * f
        # on the tangent plane the Hessian of a homogeneous function is its second derivative less x . f
        u = np.cross(f, np.where(np.abs(f[:, :1]) < 0.6, [1.0, 0, 0], [0, 1.0, 0]))
        u /= np.linalg.norm(u, axis=1)[:, None]
        E = np.stack([u, np.cross(f, u)], 2)
        hessian = np.einsum("kia,kij,kjb->kab", E, second, E) - along[:, None, None] * np.eye(2)
        w, V = np.linalg.eigh(hessian)
        g = np.einsum("kai,ka->ki", V, np.einsum("kia,ki->ka", E, slope))
        step = -np.einsum("kia,kab,kb->ki", E, V, g / np.maximum(np.abs(w), 1e-6))
        length = np.linalg.norm(step, axis=1)[:, None]
        step *= np.minimum(1.0, 0.3 / np.maximum(length, 1e-300))
        before = value
        for scale in (1.0, 0.3, 0.1, 0.01, 1e-3, 1e-5):
            trial = f + scale * step
            trial /= np.linalg.norm(trial, axis=1)[:, None]
            at_trial = H(trial)
            better = at_trial < value
            f, value = np.where(better[:, None], trial, f), np.where(better, at_trial, value)
            step = np.where(better[:, None], 0.0, step)
        if (value == before).all():
            break
    return f


def _edges(corners: Array) -> Array:
    """(k, 3) unit directions of the edges of a polytope or segment, each once."""
    if len(corners) == 1:
        return np.zeros((0, 3))
    if len(corners) == 2:
        d = corners[1:] - corners[:1]
    else:
        s = ConvexHull(corners).simplices
        pairs = np.unique(np.sort(np.concatenate([s[:, :2], s[:, 1:], s[:, ::2]]), axis=1), axis=0)
        d = corners[pairs[:, 1]] - corners[pairs[:, 0]]
    return d / np.linalg.norm(d, axis=1)[:, None]


def _facets(A: Array, B: Array) -> Array:
    """(k, 3) normals of the facets of conv(A) - conv(B), one of each pair of opposite ones at least."""
    M = (A[:, None] - B).reshape(-1, 3)
    if len(M) <= 4:
        n = np.cross(A[-1] - A[0], B[-1] - B[0])[None]
        length = np.linalg.norm(n)
        return n / length if length > 1e-12 else np.zeros((0, 3))
    return ConvexHull(M - M.mean(0)).equations[:, :3]


def _circles(edges: Array) -> tuple[Array, Array]:
    """Two unit vectors (k, 3) that span the plane normal to each edge."""
    u = np.cross(edges, np.where(np.abs(edges[:, :1]) < 0.6, [1.0, 0, 0], [0, 1.0, 0]))
    u /= np.linalg.norm(u, axis=1)[:, None]
    return u, np.cross(edges, u)


def _on_circles(H: Any, u: Array, v: Array) -> Array:
    """Directions of the smallest H on great circles: a grid, then golden sections about its best points."""
    if not len(u):
        return np.zeros((0, 3))

    def at(k, turn):
        return np.cos(turn)[..., None] * u[k] + np.sin(turn)[..., None] * v[k]

    grid = 96
    turns = np.arange(grid) * (2 * np.pi / grid)
    values = H(np.stack([at(np.arange(len(u)), np.full(len(u), t)) for t in turns], 1))
    k, j = np.nonzero((values <= np.roll(values, 1, 1)) & (values <= np.roll(values, -1, 1)))
    keep = np.argsort(values[k, j])[:64]
    k, low = k[keep], turns[j[keep]] - 2 * np.pi / grid
    width, ratio = np.full(len(k), 4 * np.pi / grid), (np.sqrt(5) - 1) / 2
    for _ in range(45):  # 0.13 rad down to 5e-11 rad; H is quadratic there
        left, right = low + (1 - ratio) * width, low + ratio * width
        low = np.where(H(at(k, left)) < H(at(k, right)), low, left)
        width = width * ratio
    return at(k, low + width / 2)
