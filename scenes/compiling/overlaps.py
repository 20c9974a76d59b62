"""Shapes that overlap at the start, for a warning of `compile_scene`. In numpy: nothing is compiled for one check.

Convex shapes and planes; triangle meshes and heightfields are left out. Bounding spheres find the pairs to look at.
The signed distance of convex shapes is the largest gap g(n) between their supporting planes across any direction n
(`collision/host/separation.py`); a pair is dropped at the first n with a gap larger than `enough`, else g is maximized.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...collision.host.radii import origin_radii
from ...collision.host.separation import directions
from ...collision.host.shapes import SOUPS, HostShape, crossings
from ...collision.poses import Array, rotation_matrix
from ...contact.resting.targets import PUSH
from ...engine.model import Model
from .link_poses import link_poses

LEAST = 1e-3  # part of the smaller shape's radius: smaller depths are left out
EDGE_PAIRS = 1000  # edges of A times edges of B up to which the directions across them are tried
STARTS, DISTINCT = 4, 0.9  # directions from which g is maximized, and the cosine above which two count as one
CLIMBS = 60  # steps along the gradient of g
NAMED, COUNTED = 8, 10_000  # pairs that a warning names, and pairs that it counts, at most
_SPREAD = directions(400)


def overlap_text(model: Model, q: Array, owners: Sequence[str]) -> str:
    """Message about overlaps at the coordinates q (nq,); empty if there are none. owners: those of each shape."""
    deepest: dict[tuple[str, str], float] = {}
    overlapping = overlaps(model, q, COUNTED)
    for i, j, depth in overlapping:
        pair = owners[i], owners[j]
        deepest[pair] = max(depth, deepest.get(pair, 0.0))
    if not deepest:
        return ""
    worst = sorted(deepest.items(), key=lambda item: -item[1])
    listed = "; ".join(f"{a} and {b} by {depth:.3g} m" for (a, b), depth in worst[:NAMED])
    least = "at least " if len(overlapping) == COUNTED else ""
    speed = PUSH * float(model.rest_speed)
    more = f"; and {least}{len(worst) - NAMED} more pairs" if len(worst) > NAMED else ""
    return (
        f"shapes overlap at the start: {listed}{more}. They come apart slowly, at half of rest_speed "
        f"({speed:.2g} m/s), or in Live some centimetres a second: set them apart, exclude the pair, or "
        "compile with overlaps='ignore'"
    )


def overlaps(model: Model, q: Array, most: int | None = None) -> list[tuple[int, int, float]]:
    """Pairs that may touch and overlap at the coordinates q (nq,), as (shape, shape, depth [m]).

    most: largest number of pairs, of those whose bounding spheres overlap the most.
    """
    topology = model.topology
    pairs = np.array(topology.pairs, int).reshape(-1, 2)
    if topology.filtered:
        pairs = pairs[np.asarray(model.pair_touches) > 0]
    kinds = np.array(topology.shape_kinds, str)
    pairs = pairs[~np.isin(kinds[pairs], [*SOUPS]).any(1)] if len(pairs) else pairs
    if not len(pairs):
        return []
    positions, rotations = _shape_poses(model, q)
    radius = origin_radii(model)
    i, j = pairs.T
    planes = kinds == "plane"
    offset = positions[i] - positions[j]
    apart = np.linalg.norm(offset, axis=1) - radius[i] - radius[j]
    for first, second, sign in ((i, j, -1), (j, i, 1)):
        height = sign * (offset * rotations[first][:, :, 2]).sum(1)
        apart = np.where(planes[first], height - radius[second], apart)
    allowed = LEAST * np.minimum(*np.where(planes[pairs], np.inf, radius[pairs]).T)
    near = np.flatnonzero(apart < -allowed)
    near = near[np.argsort(apart[near], kind="stable")]
    exact = (kinds[pairs] == "sphere") | planes[pairs]
    shapes: dict[int, HostShape] = {}
    overlapping = []
    for k in near.tolist():
        if len(overlapping) == most:
            break
        a, b = (int(x) for x in pairs[k])
        gap = float(apart[k])
        if not exact[k].all():
            for shape in (a, b):
                shapes.setdefault(shape, _host_shape(model, shape))
            gap = _gap(
                shapes[a], shapes[b], positions[a] - positions[b], rotations[a], rotations[b], float(-allowed[k])
            )
        if gap < -allowed[k]:
            overlapping.append((a, b, -gap))
    return overlapping


def _gap(a: HostShape, b: HostShape, shift: Array, Ra: Array, Rb: Array, enough: float) -> float:
    """Signed distance of convex shapes, or of one and a plane, A at `shift` from B; or any lower bound above `enough`.

    Ra, Rb: (3, 3) shape to world.
    """

    def points(n: Array) -> Array:
        """Lowest points of the cores' difference along each n (k, 3)."""
        return shift + a.support(-n @ Ra) @ Ra.T - b.support(n @ Rb) @ Rb.T

    if a.kind == "plane":
        return float((-(shift - b.support(Ra[None, :, 2] * -1 @ Rb) @ Rb.T) @ Ra[:, 2])[0]) - b.radius
    if b.kind == "plane":
        return float(((shift + a.support(-Rb[None, :, 2] @ Ra) @ Ra.T) @ Rb[:, 2])[0]) - a.radius
    tried = [-a.normals @ Ra.T, b.normals @ Rb.T]
    if len(a.edges) * len(b.edges) <= EDGE_PAIRS:
        tried.append(crossings(a.edges @ Ra.T, b.edges @ Rb.T))
    middle = shift + Ra @ a.middle - Rb @ b.middle
    tried.append(np.where(np.linalg.norm(middle) > 0, middle, [0, 0, 1.0])[None])
    for shape, R in ((a, Ra), (b, Rb)):
        if shape.kind in ("capsule", "cylinder"):  # side by side they are farthest apart across their axes
            across_axis = middle - R[:, 2] * (R[:, 2] @ middle)
            tried.append(across_axis[None] if np.linalg.norm(across_axis) > 0 else R[None, :, 0])
    n = np.concatenate(tried)
    n = n / np.linalg.norm(n, axis=1, keepdims=True)
    skin = a.radius + b.radius

    def across(n: Array) -> Array:
        return np.einsum("ki,ki->k", n, points(n)) - skin

    g = across(n)
    best = float(g.max())
    polytopes = a.kind in ("box", "hull") and b.kind in ("box", "hull")
    if best > enough or (polytopes and len(tried) == 4):
        return best
    n = np.concatenate([n, _SPREAD])
    g = np.concatenate([g, across(_SPREAD)])
    starts: list[Array] = []
    for k in np.argsort(-g):
        if len(starts) < STARTS and all(n[k] @ start < DISTINCT for start in starts):
            starts.append(n[k])
    for start in starts:
        best = max(best, _climb(points, start) - skin)
        if best > enough:
            break
    return best


def _climb(points: Callable[[Array], Array], n: Array) -> float:
    """The largest n . points(n) uphill from n (3,): its gradient is the point itself."""
    step, w = 0.5, points(n[None])[0]
    best = float(n @ w)
    for _ in range(CLIMBS):
        rise = w - (n @ w) * n
        size = np.linalg.norm(rise)
        if size < 1e-12 or step < 1e-5:
            break
        new = n + step * rise / size
        new = new / np.linalg.norm(new)
        there = points(new[None])[0]
        if (value := float(new @ there)) > best:
            best, n, w = value, new, there
        else:
            step /= 2
    return best


def _host_shape(model: Model, k: int) -> HostShape:
    topology = model.topology
    points = np.asarray(model.points, float)[slice(*topology.shape_points[k])]
    return HostShape(topology.shape_kinds[k], np.asarray(model.shape_size, float)[k], points, topology.shape_faces[k])


def _shape_poses(model: Model, q: Array) -> tuple[Array, Array]:
    """Positions (ns, 3) [m] and rotations (ns, 3, 3) of the shapes in the world."""
    p, R = link_poses(model, q)
    p, R = np.concatenate([p, np.zeros((1, 3))]), np.concatenate([R, np.eye(3)[None]])  # the world is the last
    on = np.array(model.topology.shape_links, int)
    own_p, own_q = np.asarray(model.shape_position, float), np.asarray(model.shape_quaternion, float)
    own_R = np.moveaxis(np.array(rotation_matrix(own_q.T)), -1, 0)
    return p[on] + np.einsum("nij,nj->ni", R[on], own_p), R[on] @ own_R
