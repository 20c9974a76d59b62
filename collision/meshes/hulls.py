"""Convex hulls of points: exact, reduced to few vertices, and their faces' outlines (Qhull through scipy)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .repair import consistent_winding
from .surfaces import Floats, Ints, MeshError, Surface, areas, is_closed

MAX_HULL_VERTICES = 64
PLANAR = 1e-9  # of the size: how far apart coplanar points may be
ENOUGH = 1e-6  # of the size: the effect of rounding to single precision, which most files have
MANY_POINTS = 20_000  # hulls of more vertices are taken of their extreme points in DIRECTIONS directions
DIRECTIONS, FEW_DIRECTIONS = 1024, 64


class Convex(NamedTuple):
    """The convex parts that replace a mesh in collision detection.

    parts: closed convex surfaces of at most MAX_HULL_VERTICES vertices each.
    excess: volume of the parts beyond that of the mesh, before they are reduced, as a part of its volume; nan if the
        mesh is open.
    deviation: how far vertices of the mesh rise above faces of the reduced parts [m].
    """

    parts: tuple[Surface, ...]
    excess: float
    deviation: float


def convex_hull(points: Floats) -> Surface:
    """Surface of the convex hull of points (n, 3) [m]; its vertices are those points that are corners, in order."""
    from scipy.spatial import ConvexHull, QhullError

    size = np.ptp(points, axis=0).max()
    flat = "they lie in one plane: give points that enclose a volume, or use a thin Box"
    if size == 0 or _thickness(points) <= PLANAR * size:
        raise MeshError(flat)
    try:
        hull = ConvexHull((points - points.mean(axis=0)) / size)
    except QhullError as error:
        raise MeshError(flat) from error
    kept, faces = np.unique(hull.simplices, return_inverse=True)
    vertices, faces = points[kept], faces.reshape(-1, 3)
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces = np.where(inward[:, None], faces[:, ::-1], faces).astype(np.int64)
    if not is_closed((vertices, faces)):  # the normals of slivers are useless: use their neighbours
        faces = consistent_winding(faces)[0]
    return vertices, faces


def hull_volume(points: Floats) -> float:
    """Volume of the convex hull of points (n, 3), 0 if they lie in one plane [m^3]."""
    from scipy.spatial import ConvexHull, QhullError

    size = np.ptp(points, axis=0).max(initial=0) if len(points) >= 4 else 0.0
    if size == 0:
        return 0.0
    try:
        return float(ConvexHull((points - points.mean(axis=0)) / size).volume) * size**3
    except QhullError:
        return 0.0


def thin_out(points: Floats) -> Floats:
    """Return fewer points with the same hull; if that hull itself has too many vertices, points spread all over it."""
    if len(points) <= MANY_POINTS:
        return points
    few = _extreme(points, FEW_DIRECTIONS)
    inner = convex_hull(points[few])
    outside = above(points, inner) > PLANAR * np.ptp(points, axis=0).max()
    outside[few] = True
    rest = points[outside]
    return rest if len(rest) <= MANY_POINTS else rest[_extreme(rest, DIRECTIONS)]


def _extreme(points: Floats, count: int) -> Ints:
    """Indices of the farthest points in directions that are evenly spread once the bounding box is scaled to a cube."""
    scaled = (points - points.mean(axis=0)) / np.maximum(np.ptp(points, axis=0), 1e-300)
    # Fibonacci's spiral on the sphere
    k = np.arange(count) + 0.5
    z, angle = 1 - 2 * k / count, np.pi * (1 + np.sqrt(5)) * k
    r = np.sqrt(1 - z * z)
    directions = np.concatenate([np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1), np.eye(3), -np.eye(3)])
    columns = np.ascontiguousarray(scaled.T)
    furthest = [(directions[i : i + 16] @ columns).argmax(axis=1) for i in range(0, len(directions), 16)]
    return np.unique(np.concatenate(furthest))


def reduced_hull(points: Floats, extreme: Floats | None = None) -> tuple[Surface, float]:
    """The convex hull with at most MAX_HULL_VERTICES vertices, and how far points rise above its faces [m].

    Starting from four extreme points, the point that rises furthest above a face is added, as in Quickhull, until there
    are enough, or no point rises by more than ENOUGH: rounding in a file makes corners of points in one plane. The
    remaining points lie outside: the reduced hull is a little too small.
    extreme: `thin_out(points)`, if the caller has it already.
    """
    candidates = convex_hull(thin_out(points) if extreme is None else extreme)[0]
    size = np.ptp(points, axis=0).max()
    chosen = _corners(candidates)
    hull = convex_hull(candidates[chosen])
    while len(chosen) < min(MAX_HULL_VERTICES, len(candidates)):
        heights = above(candidates, hull)
        worst = _outermost(candidates, heights)
        if heights[worst] <= ENOUGH * size:
            break
        chosen.append(worst)
        hull = convex_hull(candidates[sorted(chosen)])
    return hull, max(float(above(points, hull).max()), 0.0)


def as_hull(surface: Surface, volume: float) -> Convex:
    """The convex hull of a mesh of this volume (nan: open)."""
    try:
        extreme = thin_out(surface[0])
        hull, deviation = reduced_hull(surface[0], extreme)
    except MeshError as error:
        raise MeshError('it is flat and has no convex hull: use a thin Box, or convex="none"') from error
    return Convex((hull,), hull_volume(extreme) / volume - 1 if volume else np.inf, deviation)


def outlines(hull: Surface) -> tuple[tuple[int, ...], ...]:
    """Faces of a convex hull, triangles in one plane merged: rings of vertices, counter-clockwise from outside."""
    vertices, faces = hull
    normals, offsets = _planes(hull)
    size = np.ptp(vertices, axis=0).max()
    off = np.abs(np.einsum("ik,fvk->ifv", normals, vertices[faces]) - offsets[:, None, None]).max(axis=2)
    coplanar = off <= PLANAR * size  # whichever way they face: slivers may face anywhere
    neighbours = _neighbours(faces)
    rings: list[tuple[int, ...]] = []
    free = np.ones(len(faces), bool)
    for seed in np.argsort(-areas(hull), kind="stable"):  # the planes of slivers are useless, so large faces first
        if not free[seed]:
            continue
        group, reached = {int(seed)}, [int(seed)]
        while reached:
            for other in neighbours[reached.pop()]:
                if other not in group and free[other] and coplanar[seed, other]:
                    group.add(other)
                    reached.append(other)
        members = sorted(group)
        free[members] = False
        rings += _rings(faces[members])
    return tuple(sorted(rings))


def _thickness(points: Floats) -> float:
    """Smallest singular value of the centred points, divided by the root of their number [m]."""
    if len(points) < 4:
        return 0.0
    centred = points - points.mean(axis=0)
    scale = np.abs(centred).max()
    if len(points) > 1000:  # moments, whose singular values are the squares: exact enough unless the points are flat
        moments = (centred / scale).T @ (centred / scale) / len(points)
        spread = np.sqrt(max(np.linalg.eigvalsh(moments)[0], 0.0))
        if spread > 1e-6:
            return float(spread * scale)
    return float(np.linalg.svd(centred / scale, compute_uv=False)[-1] * scale / np.sqrt(len(points)))


def _corners(points: Floats) -> list[int]:
    """Four points of a large tetrahedron: the ends of the longest axis, furthest from their line, from their plane."""
    axis = int(np.ptp(points, axis=0).argmax())
    a, b = _outermost(points, -points[:, axis]), _outermost(points, points[:, axis])
    along = (points[b] - points[a]) / np.linalg.norm(points[b] - points[a])
    c = _outermost(points, np.linalg.norm(np.cross(points - points[a], along), axis=1))
    across = np.cross(along, points[c] - points[a])
    d = _outermost(points, np.abs((points - points[a]) @ (across / np.linalg.norm(across))))
    return [a, b, c, d]


def _outermost(points: Floats, heights: Floats) -> int:
    """The highest point; of many in one plane the farthest from the middle, which is a corner."""
    radius = np.linalg.norm(points - points.mean(axis=0), axis=1)
    level = heights >= heights.max() - ENOUGH * np.ptp(points, axis=0).max()
    return int(np.where(level, radius, -1.0).argmax())


def _planes(hull: Surface) -> tuple[Floats, Floats]:
    """Outward unit normals (m, 3) and offsets (m,) [m] of the faces; zero normals where a face has no area."""
    a, b, c = np.moveaxis(hull[0][hull[1]], 1, 0)
    normals = np.cross(b - a, c - a)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = normals / np.where(length > 0, length, 1.0)
    return normals, np.einsum("ij,ij->i", normals, a)


def above(points: Floats, hull: Surface) -> Floats:
    """Height (n,) of points (n, 3) above the hull's furthest face [m]: negative inside, at most the distance."""
    normals, offsets = _planes(hull)
    chunks = np.array_split(points, len(points) // 50_000 + 1)  # not all points times all faces at once
    return np.concatenate([(chunk @ normals.T - offsets).max(axis=1) for chunk in chunks])


def _neighbours(faces: Ints) -> list[list[int]]:
    owner = {(int(f[k]), int(f[k - 2])): i for i, f in enumerate(faces) for k in range(3)}
    return [[owner[int(f[k - 2]), int(f[k])] for k in range(3) if (int(f[k - 2]), int(f[k])) in owner] for f in faces]


def _rings(faces: Ints) -> list[tuple[int, ...]]:
    """Outline of the triangles of one plane, from its smallest vertex; the triangles, if it touches itself."""
    sides = {(int(f[k - 2 - 1]), int(f[k - 2])) for f in faces for k in range(3)}
    following = {a: b for a, b in sides if (b, a) not in sides}
    ring = [min(following)] if following else []
    while ring and following[ring[-1]] != ring[0] and len(ring) <= len(following):
        ring.append(following[ring[-1]])
    if len(ring) == len(following) == sum((b, a) not in sides for a, b in sides):
        return [tuple(ring)]
    return [tuple(np.roll(f, -int(f.argmin())).tolist()) for f in faces]
