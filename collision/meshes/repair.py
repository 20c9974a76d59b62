"""Repair of triangle soups: the content of a file becomes, if it can, one closed surface that faces outwards.

In this order: coincident vertices are merged, collapsed and repeated faces dropped, cracks welded, winding made
consistent, small holes filled, bodies that are inside out turned. Everything runs as array operations: 10^6 faces
take seconds. Surfaces that cut through themselves or each other are not detected,
and bodies that share an edge count as one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .surfaces import Floats, Ints, MeshError, Surface, areas, boundary, edge_runs, tetrahedra

SAME_POINT = 1e-9  # of the size: files in single precision repeat vertices exactly, transforms round in double
CRACK = 1e-5  # of the size: neighbouring patches rounded apart, a hundred times their single precision
SEAM = 1e-6  # of the surface's area: a smaller hole is not a hole
SMALL_HOLE = 0.1  # of the surface's area: a larger hole is likely to be an intended opening
MANY_BODIES = 200  # bodies inside out: if there are more, containment is decided by bounding boxes alone


def repair(vertices: Floats, faces: Ints) -> tuple[Surface, tuple[str, ...], int]:
    """Return the repaired surface, the repairs (sentences), and the number of its bodies."""
    done: list[str] = []
    vertices, faces = _merge(vertices, faces, done)
    faces = _drop_repeated(faces, done)
    vertices, faces = _weld_cracks(vertices, faces, done)
    faces, flipped, one_sided = consistent_winding(faces)
    if flipped:
        done.append(f"faces turned that were wound the wrong way: {flipped}")
    if not one_sided:
        vertices, faces = _fill_holes(vertices, faces, done)
    bodies = _bodies(faces)
    faces = _face_outwards(vertices, faces, bodies, done)
    return (vertices, np.ascontiguousarray(faces)), tuple(done), int(bodies.max()) + 1


def _merge(vertices: Floats, faces: Ints, done: list[str]) -> Surface:
    """Return the surface without unused vertices, coincident ones merged, and faces that collapse dropped."""
    used = np.zeros(len(vertices), bool)
    used[faces] = True
    faces = (np.cumsum(used) - 1)[faces]
    vertices = vertices[used]
    size = np.ptp(vertices, axis=0).max()
    if size == 0:
        raise MeshError("all its faces are degenerate, they have no area: give a mesh with triangles")
    # numbered by their order in the file; shared ones are not a repair: STL cannot share vertices
    vertices, new = coincident(vertices, SAME_POINT * size)
    return vertices, _drop_collapsed(new[faces], done)


def coincident(points: Floats, cell: float, shift: float = 0.0) -> Surface:
    """Rows (n, k <= 4) that differ by more than a cell, the first of each group; and the group (n,) of each row."""
    rounded = np.rint((points - points.min(axis=0)) / cell + shift).astype(np.int64)
    # one number per row: rows of equal hash are equal rows, which is checked
    odd = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64)
    key = np.bitwise_xor.reduce(rounded.view(np.uint64) * odd[: points.shape[1]], axis=1)
    key ^= key >> np.uint64(29)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(rounded[first][group], rounded):
        _, first, group = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return points[first[order]], np.argsort(order)[group.ravel()]


def _drop_collapsed(faces: Ints, done: list[str]) -> Ints:
    kept = (faces != np.roll(faces, 1, axis=1)).all(axis=1)
    if not kept.any():
        raise MeshError("all its faces are degenerate, they have no area: give a mesh with triangles")
    if not kept.all():
        done.append(f"degenerate faces removed: {np.count_nonzero(~kept)}")
    return faces[kept]


def _drop_repeated(faces: Ints, done: list[str]) -> Ints:
    """Keep at most one face per three vertices: none where two bodies touch face to face, one of a two-sided sheet."""
    low, high = faces.min(axis=1), faces.max(axis=1)
    middle = faces.sum(axis=1) - low - high
    order = np.lexsort((high, middle, low))
    same = ~np.diff(np.stack([low, middle, high])[:, order], axis=1).any(axis=0)
    if not same.any():
        return faces
    first = np.concatenate([[0], np.flatnonzero(~same) + 1])
    # even permutations of (low, middle, high) wind one way, odd ones the other
    lowest = faces.argmin(axis=1)
    even = faces[np.arange(len(faces)), (lowest + 1) % 3] == middle
    net = np.add.reduceat(np.where(even[order], 1, -1), first)
    one = np.sort(order[first])
    outer = np.sort(order[first[net != 0]])
    walls_vanish = len(outer) > 0 and not len(boundary(consistent_winding(faces[outer])[0]))
    kept = outer if walls_vanish else one
    done.append(f"repeated faces removed: {len(faces) - len(kept)}")
    return faces[kept]


def _weld_cracks(vertices: Floats, faces: Ints, done: list[str]) -> Surface:
    """Merge vertices on open edges that are closer than CRACK, if that closes some edges."""
    before = _rims(faces)
    if not len(before):
        return vertices, faces
    rim = np.unique(before)
    cell = CRACK * np.ptp(vertices, axis=0).max()
    welded = faces
    for shift in (0.0, 1 / 3, 2 / 3):  # neighbours on two sides of a cell's wall meet in shifted cells
        points, group = coincident(vertices[rim], cell, shift)
        stays = np.full(len(points), len(vertices))
        np.minimum.at(stays, group, rim)
        new = np.arange(len(vertices))
        new[rim] = stays[group]
        welded = new[welded]
        rim = np.unique(new[rim])
    kept = (welded != np.roll(welded, 1, axis=1)).all(axis=1)
    after = _rims(welded[kept])
    if not kept.any() or len(after) >= len(before):
        return vertices, faces
    done.append(f"cracks welded: {len(before) - len(after)} of {len(before)} open edges")
    used, faces = np.unique(welded[kept], return_inverse=True)
    return vertices[used], faces.reshape(-1, 3)


def _rims(faces: Ints) -> Ints:
    """Edges (k, 2) with an odd number of faces, whatever their winding."""
    order, first, _ = edge_runs(faces)
    odd = order[first[:-1][np.diff(first) % 2 == 1]]
    return np.stack([faces.ravel()[odd], np.roll(faces, -1, axis=1).ravel()[odd]], axis=1)


def consistent_winding(faces: Ints) -> tuple[Ints, int, bool]:
    """Turn faces so that neighbours run along their common edge in opposite directions.

    Returns (faces, number of faces turned, whether some part is one-sided as a Moebius strip is). Neighbours are two
    faces that are alone on an edge; of each connected part the smaller side is turned.
    Each face is twice in a graph, as it is and turned; an edge links the copies that agree. The two copies
    of a connected part are then two components, or one if it is one-sided.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    m = len(faces)
    order, first, forward = edge_runs(faces)
    shared = first[:-1][np.diff(first) == 2]
    a, b = order[shared], order[shared + 1]
    clash = forward[a] == forward[b]
    a, b = a // 3, b // 3
    rows, columns = np.concatenate([a, a + m]), np.concatenate([b + m * clash, b + m * ~clash])
    graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(2 * m, 2 * m))
    _, sheet = connected_components(graph, directed=False)
    as_is, flipped = sheet[:m], sheet[m:]
    _, part = np.unique(np.minimum(as_is, flipped), return_inverse=True)
    flip = as_is > flipped
    flip ^= (2 * np.bincount(part, weights=flip) > np.bincount(part))[part]
    wound = np.where(flip[:, None], faces[:, ::-1], faces)
    return wound, int(flip.sum()), bool((as_is == flipped).any())


def _bodies(faces: Ints) -> Ints:
    """Index (m,) of the body that each face belongs to: faces with a common edge are of one body."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    m = len(faces)
    order, first, _ = edge_runs(faces)
    inner = np.ones(len(order) - 1, bool)
    inner[first[1:-1] - 1] = False
    links = order[:-1][inner] // 3, order[1:][inner] // 3
    graph = coo_array((np.ones(len(links[0]), np.int8), links), shape=(m, m))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _fill_holes(vertices: Floats, faces: Ints, done: list[str]) -> Surface:
    """Close holes of small area by a cone from their middle, a hole of three edges by one face.

    A boundary is a cycle, so a cone over each of its connected parts closes it whatever its shape; if
    a vertex lies on an edge of a neighbour, the hole is a triangle without area.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = boundary(faces)
    if not len(edges):
        return vertices, faces
    rim, local = np.unique(edges, return_inverse=True)
    local = local.reshape(-1, 2)
    graph = coo_array((np.ones(len(local), np.int8), local.T), shape=(len(rim), len(rim)))
    count, part = connected_components(graph, directed=False)
    hole = part[local[:, 0]]
    middles = np.stack([np.bincount(part, weights=vertices[rim, k]) for k in range(3)], axis=1)
    middles /= np.bincount(part)[:, None]
    cone = np.stack([edges[:, 1], edges[:, 0], len(vertices) + hole], axis=1)
    with_middles = np.concatenate([vertices, middles])
    area = np.bincount(hole, weights=areas((with_middles, cone)))
    small = area <= SMALL_HOLE * areas((vertices, faces)).sum()
    if not small.any():
        return vertices, faces
    simple = (np.bincount(hole) == 3) & (np.bincount(part) == 3)
    apex = np.full(count, -1)  # a triangle's apex is one of its corners, and two of its three faces collapse
    np.maximum.at(apex, part, rim)
    round_ = small & ~simple
    apex[round_] = len(vertices) + np.arange(round_.sum())
    cone[:, 2] = apex[hole]
    cone = cone[small[hole]]
    cone = cone[(cone != np.roll(cone, 1, axis=1)).all(axis=1)]
    share = area / areas((vertices, faces)).sum()
    seams, holes = np.count_nonzero(share <= SEAM), np.count_nonzero(small & (share > SEAM))
    if seams:
        done.append(f"seams closed, vertices on neighbours' edges: {seams}")
    if holes:
        rest = f", larger ones left open: {np.count_nonzero(~small)}" if not small.all() else ""
        done.append(f"holes filled: {holes}, {100 * share[small].sum():.2g} % of the surface{rest}")
    return np.concatenate([vertices, middles[round_]]), np.concatenate([faces, cone])


def _face_outwards(vertices: Floats, faces: Ints, body: Ints, done: list[str]) -> Ints:
    """Turn bodies that are inside out, with the voids in them; bodies inside another one stay as they are."""
    parts = tetrahedra((vertices, faces), vertices.mean(axis=0))[1]
    volumes = np.asarray(np.bincount(body, weights=parts), np.float64)
    if len(boundary(faces)):
        flip = np.full(len(volumes), volumes.sum() < 0)
    else:
        flip = _inside_out(vertices, faces, body, volumes)
    if flip.any():
        which = "all faces" if flip.all() else f"{np.count_nonzero(flip)} of {len(flip)} bodies"
        done.append(f"inside out: {which} turned")
    return np.where(flip[body][:, None], faces[:, ::-1], faces)


def _inside_out(vertices: Floats, faces: Ints, body: Ints, volumes: Floats) -> NDArray[np.bool_]:
    """Bodies of negative volume that no other encloses, and the bodies in them."""
    flip = np.zeros(len(volumes), bool)
    if (volumes >= 0).all():
        return flip
    members = np.split(np.argsort(body, kind="stable"), np.cumsum(np.bincount(body))[:-1])
    boxes = np.array([(vertices[faces[m]].min(axis=(0, 1)), vertices[faces[m]].max(axis=(0, 1))) for m in members])
    low, high = boxes[:, 0], boxes[:, 1]
    negative = np.flatnonzero(volumes < 0)
    many = len(negative) > MANY_BODIES

    def enclose(outer: np.intp, inner: np.intp) -> bool:
        return many or _encloses(vertices, faces[members[outer]], vertices[faces[members[inner][0], 0]])

    for k in negative:
        larger = np.abs(volumes) > abs(volumes[k])
        around = (low <= low[k]).all(axis=1) & (high >= high[k]).all(axis=1) & larger
        if not any(enclose(j, k) for j in np.flatnonzero(around)):
            within = (low >= low[k]).all(axis=1) & (high <= high[k]).all(axis=1) & ~larger
            within[k] = False
            flip[[k, *(j for j in np.flatnonzero(within) if enclose(k, j))]] = True
    return flip


def _encloses(vertices: Floats, faces: Ints, point: Floats) -> bool:
    """Containment by the solid angle of the faces, 4 pi inside and 0 outside (van Oosterom and Strackee 1983)."""
    a, b, c = np.moveaxis((vertices - point)[faces], 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    dot = lambda x, y: np.einsum("ij,ij->i", x, y)  # noqa: E731
    over = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
    return abs(2 * np.arctan2(dot(a, np.cross(b, c)), over).sum()) > 2 * np.pi


def cluster_vertices(surface: Surface, cell: float) -> Surface:
    """The surface with one vertex, the outermost, in each cell [m] of a grid: coarser, and still closed if it was."""
    vertices, faces = surface
    outermost = np.argsort(-np.linalg.norm(vertices - vertices.mean(axis=0), axis=1), kind="stable")
    group = np.empty(len(vertices), np.int64)
    kept, group[outermost] = coincident(vertices[outermost], cell)
    faces = group[faces]
    return kept, faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
