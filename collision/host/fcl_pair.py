"""The narrow phase of FCL: depths come from distances alone (`separation.py`).

`collide` gives the triangles that meet and the corners of boxes that lie flat.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .fcl_shapes import POINT, FclShape, fcl_library
from .planes import Poses, few_of
from .separation import SignedGap, convex_overlap, distinct, overlap
from .shapes import Floats, HostShape, crossings

APART = 1e-3  # of the smaller shape's width: how far shapes are moved apart to be measured well
TILT = 0.05  # [rad] corners whose gap closes only by a larger tilt are left out
EDGE_PAIRS = 1000  # edges of A times edges of B up to which the depth of hulls is found exactly
# parts of the shapes' size: how far a measured gap may be from that across its normal; else nudges (k, 3) are tried
TRUST = 2e-8
NUDGES = np.array([[2.0, 3.0, 5.0], [-50.0, 20.0, -30.0], [300.0, -500.0, -200.0], [-300.0, -200.0, 500.0]]) * 1e-7
CONTACTS = 64  # triangles asked for when meshes intersect
BOX_CONTACTS = 8  # as many as two faces of boxes can have


class _Pair(NamedTuple):
    """Two shapes, neither of which is a plane; lengths in FCL's unit, B at the origin, A at `shift` (3,).

    Ra, Rb: (3, 3) shape to world. item_a, item_b: FCL's objects. The cores' distance is FCL's plus `skin`.
    """

    a: HostShape
    b: HostShape
    item_a: Any
    item_b: Any
    Ra: Floats
    Rb: Floats
    shift: Floats

    @staticmethod
    def of(a: FclShape, b: FclShape, poses: Poses, unit: float) -> _Pair:
        pa, Ra, pb, Rb = poses
        item_a = a.by_mesh if b.shape.is_soup and a.by_mesh else a.first
        item_b = b.by_mesh if a.shape.is_soup and b.by_mesh else b.second
        item_a.setRotation(Ra)
        item_b.setRotation(Rb)
        item_b.setTranslation(np.zeros(3))
        return _Pair(a.shape, b.shape, item_a, item_b, Ra, Rb, (pa - pb) * unit)

    @property
    def skin(self) -> float:
        return POINT * (self.a.is_rounded + self.b.is_rounded)

    def distance(self, position: Floats) -> tuple[float, Floats, Floats, Any]:
        """FCL's distance with A at a position, its points on A and on B, and its result. It is wrong unless apart."""
        fcl = fcl_library()
        self.item_a.setTranslation(position)
        result = fcl.DistanceResult()
        swap = self.b.is_soup and not self.a.is_soup  # a mesh's point comes first, so let the mesh be first
        items = (self.item_b, self.item_a) if swap else (self.item_a, self.item_b)
        gap = fcl.distance(*items, fcl.DistanceRequest(enable_nearest_points=True), result)
        on_a, on_b = reversed(result.nearest_points) if swap else result.nearest_points
        # FCL places a sphere's point correctly only by some shapes, but the core is no more than that point
        on_a = position if self.a.kind == "sphere" else on_a
        on_b = np.zeros(3) if self.b.kind == "sphere" else on_b
        return gap, on_a, on_b, result

    def measure(self, move: Floats) -> SignedGap | None:
        """The cores' distance with A moved by (3,); None if they touch or one is inside the other.

        FCL's search may stop early if several corners are equally far in its direction. It always returns the
        distance of some two points, so a smaller one is better, and for convex shapes the gap across the
        normal tells whether it is the least. A nudge breaks the tie; it is taken back to first order, which leaves
        an error of |nudge|^2 / gap, since the gradient of the distance of convex shapes is that smooth.
        """
        best = self._measure(move)
        if best is None:
            return None
        size = self.a.girth + self.b.girth
        convex = not (self.a.is_soup or self.b.is_soup)
        for nudge in NUDGES[: None if convex else 1] * size:
            if convex and float(self.plane_gap(best.normal[None], move)[0]) > best.gap - TRUST * size:
                break
            hit = self._measure(move + nudge)
            if hit is not None and (gap := hit.gap - float(hit.normal @ nudge)) < best.gap - nudge @ nudge / hit.gap:
                best = SignedGap(gap, hit.normal, hit.a - nudge, hit.b)
        return best

    def _measure(self, move: Floats) -> SignedGap | None:
        gap, on_a, on_b, _ = self.distance(self.shift + move)
        length = np.linalg.norm(on_a - on_b)
        if not (gap > POINT and 0 < length < np.inf) or self._one_inside(self.shift + move):
            return None
        return SignedGap(float(gap) + self.skin, (on_a - on_b) / length, on_a, on_b)

    def _one_inside(self, position: Floats) -> bool:
        """Return whether one shape contains the other, with A at a position where their surfaces do not meet."""
        if self.b.is_soup and self.b.contains((position + self.Ra @ self.a.any_point) @ self.Rb):
            return True
        return self.a.is_soup and self.a.contains((self.Rb @ self.b.any_point - position) @ self.Ra)

    def plane_gap(self, n: Floats, move: Floats | float = 0.0) -> Floats:
        """g(n) of `separation.py` for the cores with A moved by (3,), n (k, 3) unit."""
        on_a = self.shift + move + self.a.support(-n @ self.Ra) @ self.Ra.T
        return np.einsum("ki,ki->k", n, on_a - self.b.support(n @ self.Rb) @ self.Rb.T)

    def face_normals(self) -> Floats:
        """Normals (k, 3) along which convex shapes part most likely: of faces, and of pairs of edges; polytopes have no
        others."""
        faces = [-self.a.normals @ self.Ra.T, self.b.normals @ self.Rb.T]
        if len(self.a.edges) * len(self.b.edges) <= EDGE_PAIRS:
            faces.append(crossings(self.a.edges @ self.Ra.T, self.b.edges @ self.Rb.T))
        return np.concatenate(faces)

    def ways_out(self) -> list[Floats]:
        """Directions (3,) to move A off B if one is a mesh: off triangles that meet or are near, off the middle."""
        fcl = fcl_library()
        *_, result = self.distance(self.shift)
        met = fcl.CollisionResult()
        fcl.collide(self.item_a, self.item_b, fcl.CollisionRequest(CONTACTS, True), met)
        ways: list[Floats] = []
        for hit in (*met.contacts, result):
            # of two meshes each number is a triangle of one, else the larger one is the mesh's
            one, other = hit.b1, hit.b2
            if self.a.is_soup != self.b.is_soup:
                one = other = max(one, other)
            ways += [-self.Ra @ self.a.normals[one]] if self.a.is_soup and one >= 0 else []
            ways += [self.Rb @ self.b.normals[other]] if self.b.is_soup and other >= 0 else []
        if not all(x.has_inside for x in (self.a, self.b) if x.is_soup):
            ways = [sign * way for way in ways for sign in (1.0, -1.0)]
        middle = self.shift + self.Ra @ self.a.middle - self.Rb @ self.b.middle
        length = float(np.linalg.norm(middle))
        ways += [middle / length] if length > 0 else []
        return distinct([*ways, -self.Ra[:, 2] if self.a.kind == "heightfield" else self.Rb[:, 2]])

    def nearest(self) -> SignedGap:
        """Signed gap of the cores."""
        apart = APART * min(self.a.least_width, self.b.least_width)
        near = self.measure(np.zeros(3))
        if near is not None and near.gap > apart:
            return near
        if not (self.a.is_soup or self.b.is_soup):
            return convex_overlap(self.measure, self.plane_gap, self.face_normals(), apart)
        ways = self.ways_out() if near is None else [near.normal, *self.ways_out()]
        hit = overlap(self.measure, ways, apart, 4 * (self.a.girth + self.b.girth + float(np.abs(self.shift).sum())))
        # a narrow passage may have no room to move
        return hit if near is None or hit.gap > near.gap - apart else near

    def flat_boxes(self, hit: SignedGap) -> list[SignedGap]:
        """The corners of the faces' common part if one box lies flat on the other, from FCL's contacts.

        FCL has contacts in overlap only, so A is moved to a slight overlap.
        """
        fcl, n = fcl_library(), hit.normal
        along_a, along_b = np.abs(n @ self.Ra).max(), np.abs(n @ self.Rb).max()
        if max(along_a, along_b) < np.cos(1e-6) or min(along_a, along_b) < np.cos(TILT):
            return [hit]
        sunk = APART * min(self.a.least_width, self.b.least_width)
        self.item_a.setTranslation(self.shift - (hit.gap + sunk) * n)
        result = fcl.CollisionResult()
        fcl.collide(self.item_a, self.item_b, fcl.CollisionRequest(BOX_CONTACTS, True), result)
        corners = [contact for contact in result.contacts if abs(contact.normal @ n) > 1 - 1e-6]
        if not corners:
            return [hit]
        points = np.array([contact.pos for contact in corners])
        gaps = hit.gap + sunk - np.array([contact.penetration_depth for contact in corners])
        hits = []
        for k in few_of(points, gaps, n, TILT):
            gap, across = float(gaps[k]), points[k] - (points[k] @ n) * n
            # the plane of the face that lies across the normal is known, the other side is a gap away
            on_b = across + (hit.b @ n if along_b >= along_a else hit.a @ n - gap) * n
            hits.append(SignedGap(gap, n, on_b + gap * n, on_b))
        return hits


def pair_hits(a: FclShape, b: FclShape, poses: Poses, unit: float) -> list[SignedGap]:
    """Rows of two shapes, neither of which is a plane, in metres."""
    pair = _Pair.of(a, b, poses, unit)
    core, ra, rb = pair.nearest(), a.shape.radius, b.shape.radius
    hit = SignedGap(core.gap - ra - rb, core.normal, core.a - ra * core.normal, core.b + rb * core.normal)
    hits = pair.flat_boxes(hit) if a.shape.kind == b.shape.kind == "box" else [hit]
    return [_in_world(x, poses[2], unit) for x in hits]


def _in_world(hit: SignedGap, origin: Floats, unit: float) -> SignedGap:
    """Return lengths in metres, and points a gap apart along the normal."""
    gap, middle = hit.gap / unit, origin + (hit.a + hit.b) / (2 * unit)
    return SignedGap(gap, hit.normal, middle + gap / 2 * hit.normal, middle - gap / 2 * hit.normal)
