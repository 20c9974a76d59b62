"""Approximate convex decomposition: a closed mesh as few convex pieces, by cutting it where it is least convex.

A piece's concavity is the volume of its hull beyond its own. The piece with the largest is cut by the plane after which
the hulls of the parts have the least total volume. Candidates are the planes of the faces at reflex edges, which take
polyhedra such as an L, a cross or stairs apart exactly; curved solids are also cut across the axes of the world and
of each piece.
The method is of the family of Chazelle's cutting at reflex edges (1984) with a tolerance as in Lien and Amato,
"Approximate convex decomposition of polyhedra" (2007); the choice of the plane by hull volumes is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .cutting import ClosedMesh, cut
from .hulls import ENOUGH, Convex, above, convex_hull, hull_volume, reduced_hull
from .repair import cluster_vertices
from .surfaces import Floats, MeshError, Surface, is_closed, signed_volume

TOLERANCE = 0.01  # of the volume: total excess of the pieces
MAX_PIECES = 32
MANY_PLANES, SOME_PLANES = 20, 8  # of reflex faces: a piece with more is curved, and only some of them are tried
MANY_EDGES = 30_000  # of a mesh, coplanar faces merged: one with more is first coarsened to GRID cells across
GRID, MAX_GRID = 32, 64
LARGE = 8_000  # edges of a piece: above, each cut costs tens of milliseconds, and only the middles are tried
WALLS_LOST = 0.1  # of the volume: a larger loss means that the grid is too coarse
MANY_VERTICES = 50_000  # the deviation is measured at no more
EXACT = 1e-9  # of the volume: rounding of hull volumes
SLIVER = 1e-7  # of the volume: a part this small comes from planes that should be one


@dataclass(frozen=True, eq=False)
class _Piece:
    """A solid, the volume of its hull, and the excess of the hull's volume [m^3]."""

    solid: ClosedMesh
    hull: float
    excess: float


def as_pieces(surface: Surface, tolerance: float = TOLERANCE, max_pieces: int = MAX_PIECES) -> Convex:
    """Convex pieces whose volumes together exceed the mesh's by at most `tolerance`, if `max_pieces` are enough."""
    if not is_closed(surface):
        raise MeshError('its surface is open, so it has no inside to cut into pieces: close it, or use convex="hull"')
    volume = signed_volume(surface)
    size = float(np.ptp(surface[0], axis=0).max())
    if volume <= EXACT * size**3:
        raise MeshError('it encloses no volume: give a mesh that does, or use convex="none"')
    solid = _coarse_solid(surface, size, volume)
    curved = len(_reflex_planes(solid)) > MANY_PLANES
    pieces = _pieces(solid, SLIVER * volume)
    stuck: list[_Piece] = []
    while pieces and len(pieces) + len(stuck) < max_pieces:
        if sum(piece.excess for piece in [*pieces, *stuck]) <= tolerance * volume:
            break
        worst = pieces.pop(int(np.argmax([piece.excess for piece in pieces])))
        halves = _best_cut(worst, max_pieces - len(pieces) - len(stuck), curved, ENOUGH * size, SLIVER * volume)
        pieces += halves
        stuck += [] if halves else [worst]
    solids = [piece.solid for piece in [*pieces, *stuck]]
    if not solids:
        raise MeshError('it is too thin and too fine to be cut into pieces: coarsen it, or use convex="none"')
    hulls = _merge_pieces([convex_hull(s.vertices)[0] for s in solids], volume, tolerance, max_pieces)
    parts = tuple(reduced_hull(points)[0] for points in hulls)
    some = surface[0][:: len(surface[0]) // MANY_VERTICES + 1]
    outside = np.min([above(some, part) for part in parts], axis=0)
    excess = sum(map(hull_volume, hulls)) / volume - 1
    return Convex(parts, excess, max(float(outside.max()), 0.0))


def _coarse_solid(surface: Surface, size: float, volume: float) -> ClosedMesh:
    """The mesh, coarsened if it has very many faces; the grid is refined while walls vanish between its points."""
    solid, cells = ClosedMesh.of(surface, ENOUGH), GRID
    if len(solid.edges) <= MANY_EDGES:
        return solid
    while True:
        solid = ClosedMesh.of(cluster_vertices(surface, size / cells), ENOUGH)
        if cells >= MAX_GRID or abs(solid.volume() - volume) <= WALLS_LOST * volume:
            return solid
        cells *= 2


def _pieces(solid: ClosedMesh, sliver: float) -> list[_Piece]:
    """The connected parts of a solid that are not slivers."""
    pieces = []
    for part in _parts(solid):
        hull, volume = hull_volume(part.vertices), part.volume()
        if hull > sliver and volume > 0:
            pieces.append(_Piece(part, hull, hull - volume))
    return pieces


def _parts(solid: ClosedMesh) -> list[ClosedMesh]:
    """Connected parts; inner surfaces of voids and bores, of negative volume, belong to the part around them."""
    label = solid.edge_components()
    count = int(label.max(initial=-1)) + 1
    if count < 2:
        return [solid] * count  # none: a half may be empty
    order = np.argsort(label, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])
    parts = [solid.part(edges) for edges in members]
    volumes = np.array([part.volume() for part in parts])
    low = np.array([part.vertices.min(axis=0) for part in parts])
    high = np.array([part.vertices.max(axis=0) for part in parts])
    slack = ENOUGH * np.ptp(solid.vertices, axis=0).max()
    outer = np.flatnonzero(volumes > 0)
    edges_of = {int(k): [members[k]] for k in outer}
    for k in np.flatnonzero(volumes <= 0):
        overhang = np.maximum(low[outer] - low[k], high[k] - high[outer]).max(axis=1)
        # in the smallest part whose box is around it
        best = np.lexsort((volumes[outer], np.maximum(overhang, slack)))
        if len(outer):
            edges_of[int(outer[best[0]])].append(members[k])
    return [solid.part(np.concatenate(edges)) for edges in edges_of.values()]


def _best_cut(piece: _Piece, room: int, curved: bool, slack: float, sliver: float) -> list[_Piece]:
    """The parts after the best cut, at most `room`; none if no cut qualifies.

    curved: whether it is of a mesh with many reflex planes.
    """
    planes = _reflex_planes(piece.solid)
    many = len(planes) > MANY_PLANES
    best: list[_Piece] = []
    least = most_even = np.inf
    planes = planes[: SOME_PLANES if many else None]
    if curved or not planes:  # else the faces' planes alone take it apart
        planes = planes + _cross_planes(piece.solid.vertices)
    if many and len(piece.solid.edges) > LARGE:
        planes = _cross_planes(piece.solid.vertices)[:3]
    for normal, offset in planes:
        parts = [part for half in cut(piece.solid, normal, offset, slack) for part in _pieces(half, sliver)]
        # cutting a ring open saves nothing: of equal cuts take the first, or the most even with many reflex planes
        hulls = sum(part.hull for part in parts)
        uneven = sum(part.excess**2 for part in parts) if many else 0.0
        alike = abs(hulls - least) <= EXACT * piece.hull
        if 1 < len(parts) <= room and (uneven < most_even if alike else hulls < least):
            best, least, most_even = parts, hulls, uneven * (1 - EXACT)
    return best


def _cross_planes(points: Floats) -> list[tuple[Floats, float]]:
    """Planes (unit normal, offset [m]) across the axes of the world and the principal axes of the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    planes = [(axis, float((low + share * (high - low)) @ axis)) for share in (0.5, 0.25, 0.75) for axis in np.eye(3)]
    middle = points.mean(axis=0)
    axes = np.linalg.eigh((points - middle).T @ (points - middle))[1].T
    return planes + [(axis, float(middle @ axis)) for axis in axes]


def _reflex_planes(solid: ClosedMesh) -> list[tuple[Floats, float]]:
    """Planes of the faces at reflex edges, those with the longest and sharpest edges first."""
    start, end = solid.edges.T
    key = np.minimum(start, end) * len(solid.vertices) + np.maximum(start, end)
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    alone = first[np.diff(np.append(first, len(key))) == 2]
    a, b = order[alone], order[alone + 1]
    along = solid.vertices[end[a]] - solid.vertices[start[a]]
    opposite = start[a] == end[b]
    bend = np.einsum("ij,ij->i", np.cross(solid.normals[solid.face[a]], solid.normals[solid.face[b]]), along)
    length = np.linalg.norm(along, axis=1)
    reflex = opposite & (bend < -ENOUGH * length)
    if not reflex.any():
        return []
    normals = np.concatenate([solid.normals[solid.face[side[reflex]]] for side in (a, b)])
    origins = np.tile(solid.vertices[start[a[reflex]]], (2, 1))
    weight = np.tile(-bend[reflex], 2)
    # a plane and its reverse are the same
    leading = np.take_along_axis(normals, np.abs(normals).argmax(axis=1)[:, None], axis=1)
    normals = normals * np.sign(leading)
    offsets = np.einsum("ij,ij->i", normals, origins)
    size = np.ptp(solid.vertices, axis=0).max()
    rounded = np.rint(np.column_stack([normals, offsets / size]) / ENOUGH)
    _, where, plane = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    heaviest = np.argsort(-np.bincount(plane.ravel(), weights=weight), kind="stable")
    return [(normals[k], float(offsets[k])) for k in where[heaviest]]


def _merge_pieces(hulls: list[Floats], volume: float, tolerance: float, limit: int) -> list[Floats]:
    """Corners of the hulls, with neighbours joined while the cost is within the tolerance that is left.

    Cuts go through a whole piece and split convex parts; and a mesh may have more bodies than pieces are allowed.
    """
    hulls = _fewest(hulls, limit)
    volumes = [hull_volume(hull) for hull in hulls]
    left = max(tolerance * volume - (sum(volumes) - volume), EXACT * volume)
    growth = {pair: _growth(hulls, volumes, *pair) for pair in combinations(range(len(hulls)), 2)}
    gone: set[int] = set()
    while growth:
        (i, j), cost = min(growth.items(), key=lambda item: (item[1], item[0]))
        if cost > left:
            break
        left -= max(cost, 0.0)
        hulls[i] = _join(hulls[i], hulls[j])
        volumes[i] = hull_volume(hulls[i])
        gone.add(j)
        growth = {pair: cost for pair, cost in growth.items() if i not in pair and j not in pair}
        for k in set(range(len(hulls))) - gone - {i}:
            pair = (min(i, k), max(i, k))
            growth[pair] = _growth(hulls, volumes, *pair)
    return [hull for k, hull in enumerate(hulls) if k not in gone]


def _fewest(hulls: list[Floats], limit: int) -> list[Floats]:
    """Merge the smallest piece with the nearest until there are no more than allowed."""
    boxes = np.array([np.prod(np.ptp(hull, axis=0)) for hull in hulls])
    middles = np.array([hull.mean(axis=0) for hull in hulls])
    for _ in range(len(hulls) - limit):
        small = int(boxes.argmin())
        away = np.where(np.isfinite(boxes), np.linalg.norm(middles - middles[small], axis=1), np.inf)
        away[small] = np.inf
        near = int(away.argmin())
        hulls[near] = _join(hulls[near], hulls[small])
        boxes[near], middles[near] = np.prod(np.ptp(hulls[near], axis=0)), hulls[near].mean(axis=0)
        boxes[small] = np.inf  # removed
    return [hull for hull, box in zip(hulls, boxes, strict=True) if np.isfinite(box)]


def _join(a: Floats, b: Floats) -> Floats:
    return convex_hull(np.concatenate([a, b]))[0]


def _growth(hulls: list[Floats], volumes: list[float], i: int, j: int) -> float:
    """Volume that two hulls gain when they are joined [m^3]; infinite if their boxes do not touch."""
    a, b = hulls[i], hulls[j]
    slack = ENOUGH * max(np.ptp(a, axis=0).max(), np.ptp(b, axis=0).max())
    if (a.min(axis=0) > b.max(axis=0) + slack).any() or (b.min(axis=0) > a.max(axis=0) + slack).any():
        return np.inf
    return hull_volume(np.concatenate([a, b])) - volumes[i] - volumes[j]
