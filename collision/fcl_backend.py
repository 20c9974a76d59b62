"""The FCL backend: Proximities of any shapes, non-convex meshes too, found on the host. The only importer of fcl.

What python-fcl 0.7 can and cannot do was measured on shapes of unit size; hence the way it is used here.

- `fcl.distance` of shapes that are *apart* always ended (12 600 placements, degenerate ones among them), but its
  tolerance is absolute: gaps are off by 1e-7 as a rule and 1.5e-4 at worst, of shapes of size 1e4 by 5e-8 of their
  size at worst. So lengths are multiplied until the largest shape is about 1e4 long. In symmetric placements it may
  stop early: a point over the middle of a tetrahedron's face got the distance of a corner (see `measure`).
- Its signed distance (`enable_signed_distance`) is right to 1e-6 in shallow overlap, but took 9 s for two spheres a
  thousandth off concentric and did not end in 8 minutes for concentric ones; python-fcl catches none of its exceptions.
- `fcl.collide` gives depths that are wrong by up to 0.1 between convex shapes, and one a triangle for meshes.
- Meshes that intersect have distance 0 or -1. A mesh's nearest point comes first in whatever order the two are given;
  the points between a mesh and a sphere are in a frame of their own.

So depths come from distances alone (`separation.py`); `collide` names the triangles that meet and the corners of boxes
that lie flat. Planes are closed forms: FCL has no distance to them.

Accuracy, in units of the largest shape's size. Convex shapes: gaps 5e-8, in symmetric placements 1e-6, where round
shapes overlap deeply 1e-4 at worst, exact for boxes and hulls of few edges; normals 1e-10 as a rule, 4e-4 at worst.
Meshes: the same apart, and while no more than the rounding of a sphere or capsule overlaps; else the shortest way out
found from the triangles that meet, exact where the surface is flat as far as the depth. Closed meshes are solid,
heightfields are solid below, open meshes are surfaces.
Rows of a pair: up to four for box on box and for flat sides on a plane, else one. There is no derivative.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..engine.model import Model
from ..engine.topology import Topology
from .host.kept import Kept
from .host.pair_rows import HostRow, blank, fill, pair_table
from .host.planes import Poses, few_of, plane_rows
from .host.separation import Hit, convex_overlap, distinct, overlap
from .host.shapes import Floats, HostShape, crossings
from .proximities import Proximities

SIZE = 1e4  # of the largest shape as FCL sees it: its tolerance of 1e-6 then is 1e-10
POINT = 1e-6  # radius of what FCL takes for the core of a sphere or capsule, in its unit of length
APART = 1e-3  # of the smaller shape's width: how far shapes are moved apart to measure them well
TILT = 0.05  # [rad] corners that a larger tilt keeps apart are left out
EDGE_PAIRS = 1000  # edges of A times edges of B up to which the depth of hulls is found exactly
# parts of the shapes' size: how far a measured gap may be from the one across its normal, and nudges (k, 3) for then
TRUST = 2e-8
NUDGES = np.array([[2.0, 3.0, 5.0], [-50.0, 20.0, -30.0], [300.0, -500.0, -200.0], [-300.0, -200.0, 500.0]]) * 1e-7
CONTACTS = 64  # triangles asked for when meshes intersect
BOX_CONTACTS = 8  # as many as two faces of boxes can have
KEPT, BESIDES = 2**27, 2**13  # [bytes] of shapes kept ready for FCL, and of one besides its points


def fcl_proximities(model: Model, positions: Any, rotations: Any, margin: Any = np.inf) -> Proximities:
    """Proximities of the shapes at their poses in the world: positions (..., ns, 3) [m], rotations (..., ns, 3, 3).

    margin: [m] pairs farther apart are not reported. Leading axes, of the geometry too, are the batch, whose lanes
    are looped over on the host, under jit and vmap in one callback. Pairs of shapes whose pose or geometry is not
    finite are inactive; a lane that has one is coded NOT_FINITE, a lane with more rows than there is room for, of which
    it keeps the closest, PAIRS_FULL.
    """
    _fcl()
    topology, dtype = model.topology, jnp.result_type(positions)
    operands = {2: (positions, model.shape_size, model.points), 3: (rotations,), 0: (margin,)}
    leads = [jnp.shape(x)[: jnp.ndim(x) - own] for own, xs in operands.items() for x in xs]
    batch, n = np.broadcast_shapes(*leads), pair_table(topology).capacity

    def ranked(x: Any, own: int) -> jax.Array:
        """x with as many batch axes as the result, so that another one in front fits all operands."""
        shape = jnp.shape(x)
        return jnp.reshape(x, (1,) * (len(batch) + own - len(shape)) + shape)

    def out(*shape: int, kind: Any = dtype) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*batch, *shape), kind)

    i32, yes = np.dtype(np.int32), np.dtype(bool)
    rows = out(n, kind=i32), out(n, kind=yes), out(n), out(n, 3), out(n, 3), out(n, 3)
    result = Proximities._make((*rows, out(kind=i32), out(kind=i32)))
    return jax.pure_callback(
        partial(host_proximities, topology), result, ranked(positions, 2), ranked(rotations, 3),
        ranked(model.shape_size, 2), ranked(model.points, 2), ranked(jnp.asarray(margin, dtype), 0),
        vmap_method="expand_dims",
    )  # fmt: skip


def _fcl() -> Any:
    try:
        import fcl
    except ImportError as error:
        raise ImportError(
            "the FCL backend needs python-fcl: pip install python-fcl, or use backend='device'"
        ) from error
    return fcl


# -- lanes ---------------------------------------------------------------------------------------------------------

ENDLESS = 1e100  # [m] FCL's tree of boxes takes the volume of a box, and crashes where that is not finite
_LOCK = threading.Lock()  # callbacks of several devices share FCL's objects


def host_proximities(topology: Topology, *operands: Any) -> Proximities:
    """The detector on numpy arrays, in a loop over lanes; nothing is compiled.

    operands: positions, rotations, `shape_size` and `points` of the model, margin, as in fcl_proximities, with equally
    many batch axes.
    """
    _fcl()
    own = (2, 3, 2, 2, 0)
    arrays = [np.asarray(x, np.float64) for x in operands]
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - k] for x, k in zip(arrays, own, strict=True)))
    lanes = [np.broadcast_to(x, (*batch, *x.shape[x.ndim - k :])) for x, k in zip(arrays, own, strict=True)]
    one_geometry = all(np.prod(x.shape[:-2]) == 1 for x in arrays[2:4])
    made = blank(batch, pair_table(topology).capacity, np.asarray(operands[0]).dtype)
    with _LOCK:
        bodies: tuple[list[_Body], float] | None = None
        for index in np.ndindex(*batch):
            positions, rotations, sizes, points, margin = (x[index] for x in lanes)
            if bodies is None or not one_geometry:
                bodies = _bodies(topology, sizes, points)
            fill(made, index, *_lane_rows(_Lane(topology, *bodies, positions, rotations, float(margin))))
    return made


class _Lane(NamedTuple):
    """One scene: its shapes in FCL's unit, `unit` of them a metre, their poses and the margin in metres."""

    topology: Topology
    bodies: list[_Body]
    unit: float
    positions: Floats
    rotations: Floats
    margin: float

    def finite(self) -> Any:
        """Return whether each shape and its pose are finite, (ns,)."""
        poses = (np.abs(self.positions) < ENDLESS).all(axis=-1) & np.isfinite(self.rotations).all(axis=(-2, -1))
        return poses & np.array([_has_end(body.shape) for body in self.bodies], bool)


def _has_end(shape: HostShape) -> bool:
    return shape.finite and (shape.kind == "plane" or bool((np.abs(shape.bounds) < ENDLESS).all()))


def _lane_rows(lane: _Lane) -> tuple[list[HostRow], bool]:
    """All rows of a lane, and whether all that has pairs is finite."""
    fine, pairs, kinds = lane.finite(), lane.topology.pairs, lane.topology.shape_kinds
    rows: list[HostRow] = []
    for k in _near_pairs(lane, fine):
        i, j = pairs[k]
        a, b = lane.bodies[i], lane.bodies[j]
        poses = lane.positions[i], lane.rotations[i], lane.positions[j], lane.rotations[j]
        if "plane" in (kinds[i], kinds[j]):
            found = plane_rows(a.shape, b.shape, poses, lane.unit, TILT)
        else:
            found = _pair_rows(a, b, poses, lane.unit)
        rows += [HostRow(k, *hit) for hit in found if hit.gap <= lane.margin]
    return rows, bool(fine.all()) or all(fine[i] and fine[j] for i, j in pairs)


# -- broad phase -----------------------------------------------------------------------------------------------------

_BOXES: list[Any] = []  # FCL's axis-aligned box of each shape, reused: python-fcl leaks a little with each object made
TAG = 2.0**-40  # python-fcl's callback does not say which object it met: the number hides in the object's rotation


def _near_pairs(lane: _Lane, fine: Any) -> list[int]:
    """Rows of the pair table whose boxes come within the margin, ascending; pairs with a plane always."""
    pairs = lane.topology.pairs
    near: Any = range(len(pairs))
    if np.isfinite(lane.margin):
        near = sorted([*pair_table(lane.topology).with_plane, *_near_boxes(lane, fine)])
    return [k for k in near if fine[pairs[k][0]] and fine[pairs[k][1]]]


def _near_boxes(lane: _Lane, fine: Any) -> list[int]:
    bodies, row_of = lane.bodies, pair_table(lane.topology).row
    shapes = [k for k, body in enumerate(bodies) if body.shape.kind != "plane" and fine[k]]
    if not shapes:
        return []
    fcl = _fcl()
    while len(_BOXES) < len(bodies):
        _BOXES.append((box := fcl.Box(1.0, 1.0, 1.0), fcl.CollisionObject(box)))
    low, high = (np.array([bodies[k].shape.bounds[end] for k in shapes]) / lane.unit for end in (0, 1))
    R = lane.rotations[shapes]
    center = lane.positions[shapes] + np.einsum("nij,nj->ni", R, (low + high) / 2)
    half = np.einsum("nij,nj->ni", np.abs(R), (high - low) / 2) + lane.margin / 2
    for k, c, h in zip(shapes, center, half, strict=True):
        box, item = _BOXES[k]
        box.side = 2 * h
        box.computeLocalAABB()
        item.setRotation(np.array([[1, k * TAG, 0], [0, 1, 0], [0, 0, 1]]))  # widens the box by next to nothing
        item.setTranslation(c)
    tree = fcl.DynamicAABBTreeCollisionManager()
    tree.registerObjects([_BOXES[k][1] for k in shapes])
    tree.setup()
    found: list[int] = []

    def meet(one: Any, other: Any, _: Any) -> bool:
        i, j = (round(item.getRotation()[0, 1] / TAG) for item in (one, other))
        row = row_of.get((i, j) if i < j else (j, i))
        if row is not None:
            found.append(row)
        return False

    tree.collide(None, meet)
    return found


# -- narrow phase ----------------------------------------------------------------------------------------------------


class _Body(NamedTuple):
    """A shape with lengths in FCL's unit, and its core as FCL knows it, once for each side of a pair."""

    shape: HostShape
    first: Any
    second: Any
    by_mesh: Any  # a sphere's core by a mesh: FCL places points between spheres and triangles wrongly


def _bodies(topology: Topology, sizes: Floats, points: Floats) -> tuple[list[_Body], float]:
    """The shapes of one lane, and FCL's units a metre: a power of two that makes the largest shape about SIZE."""
    shapes = []
    for k, (kind, (start, stop)) in enumerate(zip(topology.shape_kinds, topology.shape_points, strict=True)):
        faces = topology.shape_faces[k] if topology.shape_faces else ()
        shapes.append(HostShape(kind, sizes[k], points[start:stop], faces))
    widths = [np.ptp(shape.bounds, axis=0).max() for shape in shapes if shape.kind != "plane" and shape.finite]
    largest = max(widths, default=0.0)
    unit = 2.0 ** np.round(np.log2(SIZE / largest)) if largest > 0 else 1.0
    return [_kept(x, unit) for x in shapes], unit


def _kept(x: HostShape, unit: float) -> _Body:
    key = x.kind, x.size.tobytes(), x.points.tobytes(), x.faces, unit
    return _KEPT.get(key, lambda: _body(*key))


def _weight(body: _Body) -> int:
    """Size of a body, about [bytes]: FCL's tree over a triangle takes ten times its corners."""
    return BESIDES + (20 if body.shape.is_soup else 4) * body.shape.points.nbytes


_KEPT = Kept(KEPT, _weight)


def _body(kind: str, size: bytes, points: bytes, faces: tuple[tuple[int, ...], ...], unit: float) -> _Body:
    s = np.frombuffer(size) * unit
    if kind == "heightfield":
        s[2] /= unit  # a count
    shape = HostShape(kind, s, np.frombuffer(points).reshape(-1, 3) * unit, faces)
    if kind == "plane" or not shape.finite:
        return _Body(shape, None, None, None)
    fcl, geometry = _fcl(), _geometry(shape)
    first, second = fcl.CollisionObject(geometry), fcl.CollisionObject(geometry)
    point = fcl.CollisionObject(fcl.Ellipsoid(POINT, POINT, POINT)) if kind == "sphere" else None
    return _Body(shape, first, second, point)


def _geometry(shape: HostShape) -> Any:
    fcl, (x, y, z) = _fcl(), shape.size.tolist()
    if shape.is_soup:
        corners = np.ascontiguousarray(shape.triangles.reshape(-1, 3))
        model = fcl.BVHModel()
        model.beginModel(len(corners) // 3, len(corners))
        model.addSubModel(corners, np.arange(len(corners)).reshape(-1, 3))
        model.endModel()
        return model
    if shape.kind == "hull":
        flat = [number for ring in shape.faces for number in (len(ring), *ring)]
        return fcl.Convex(shape.points, len(shape.faces), np.array(flat))
    makers = {
        "sphere": lambda: fcl.Sphere(POINT),
        "capsule": lambda: fcl.Capsule(POINT, 2 * y),
        "box": lambda: fcl.Box(2 * x, 2 * y, 2 * z),
        "cylinder": lambda: fcl.Cylinder(x, 2 * y),
        "ellipsoid": lambda: fcl.Ellipsoid(x, y, z),
    }
    return makers[shape.kind]()


class _Pair(NamedTuple):
    """Two shapes neither of which is a plane; lengths in FCL's unit, B at the origin, A at `shift` (3,).

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
    def of(a: _Body, b: _Body, poses: Poses, unit: float) -> _Pair:
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
        fcl = _fcl()
        self.item_a.setTranslation(position)
        result = fcl.DistanceResult()
        swap = self.b.is_soup and not self.a.is_soup  # a mesh's point comes first, so let the mesh be first
        items = (self.item_b, self.item_a) if swap else (self.item_a, self.item_b)
        gap = fcl.distance(*items, fcl.DistanceRequest(enable_nearest_points=True), result)
        on_a, on_b = reversed(result.nearest_points) if swap else result.nearest_points
        # FCL places a sphere's point right only by some shapes, but the core is no more than that point
        on_a = position if self.a.kind == "sphere" else on_a
        on_b = np.zeros(3) if self.b.kind == "sphere" else on_b
        return gap, on_a, on_b, result

    def measure(self, move: Floats) -> Hit | None:
        """The cores' distance with A moved by (3,); None where they touch or one is inside the other.

        FCL's search may stop early where several corners are equally far in its direction. What it returns is the
        distance of some two points in any case, so a smaller one is better, and for convex shapes the gap across the
        normal tells whether it is the least. A nudge breaks the tie; it is taken back to first order, which leaves
        an error of |nudge|^2 / gap, the gradient of the distance of convex shapes being that smooth.
        """
        best = self._measured(move)
        if best is None:
            return None
        size = self.a.girth + self.b.girth
        convex = not (self.a.is_soup or self.b.is_soup)
        for nudge in NUDGES[: None if convex else 1] * size:
            if convex and float(self.plane_gap(best.normal[None], move)[0]) > best.gap - TRUST * size:
                break
            hit = self._measured(move + nudge)
            if hit is not None and (gap := hit.gap - float(hit.normal @ nudge)) < best.gap - nudge @ nudge / hit.gap:
                best = Hit(gap, hit.normal, hit.a - nudge, hit.b)
        return best

    def _measured(self, move: Floats) -> Hit | None:
        gap, on_a, on_b, _ = self.distance(self.shift + move)
        length = np.linalg.norm(on_a - on_b)
        if not (gap > POINT and 0 < length < np.inf) or self._one_inside(self.shift + move):
            return None
        return Hit(float(gap) + self.skin, (on_a - on_b) / length, on_a, on_b)

    def _one_inside(self, position: Floats) -> bool:
        """Return whether one of two shapes whose surfaces do not meet contains the other, with A at a position."""
        if self.b.is_soup and self.b.contains((position + self.Ra @ self.a.any_point) @ self.Rb):
            return True
        return self.a.is_soup and self.a.contains((self.Rb @ self.b.any_point - position) @ self.Ra)

    def plane_gap(self, n: Floats, move: Any = 0.0) -> Floats:
        """g(n) of `separation.py` for the cores with A moved by (3,), n (k, 3) unit."""
        on_a = self.shift + move + self.a.support(-n @ self.Ra) @ self.Ra.T
        return np.einsum("ki,ki->k", n, on_a - self.b.support(n @ self.Rb) @ self.Rb.T)

    def face_normals(self) -> Floats:
        """Normals (k, 3) along which convex shapes part most likely: of faces, and of edges on edges, all that
        polytopes have."""
        faces = [-self.a.normals @ self.Ra.T, self.b.normals @ self.Rb.T]
        if len(self.a.edges) * len(self.b.edges) <= EDGE_PAIRS:
            faces.append(crossings(self.a.edges @ self.Ra.T, self.b.edges @ self.Rb.T))
        return np.concatenate(faces)

    def ways_out(self) -> list[Floats]:
        """Directions (3,) to move A off B when one is a mesh: off triangles that meet or are near, off the middle."""
        fcl = _fcl()
        *_, result = self.distance(self.shift)
        met = fcl.CollisionResult()
        fcl.collide(self.item_a, self.item_b, fcl.CollisionRequest(CONTACTS, True), met)
        ways: list[Floats] = []
        for found in (*met.contacts, result):
            # of two meshes each number is one's triangle, else the larger one the mesh's
            one, other = found.b1, found.b2
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

    def nearest(self) -> Hit:
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

    def flat_boxes(self, hit: Hit) -> list[Hit]:
        """The corners of the faces' common part when one box lies flat on the other, from FCL's contacts.

        FCL has contacts in overlap only, so A is moved to a slight overlap.
        """
        fcl, n = _fcl(), hit.normal
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
            hits.append(Hit(gap, n, on_b + gap * n, on_b))
        return hits


def _pair_rows(a: _Body, b: _Body, poses: Poses, unit: float) -> list[Hit]:
    """Rows of two shapes neither of which is a plane, in metres."""
    pair = _Pair.of(a, b, poses, unit)
    core, ra, rb = pair.nearest(), a.shape.radius, b.shape.radius
    hit = Hit(core.gap - ra - rb, core.normal, core.a - ra * core.normal, core.b + rb * core.normal)
    hits = pair.flat_boxes(hit) if a.shape.kind == b.shape.kind == "box" else [hit]
    return [_in_world(x, poses[2], unit) for x in hits]


def _in_world(hit: Hit, origin: Floats, unit: float) -> Hit:
    """Lengths in metres, and points a gap apart along the normal."""
    gap, middle = hit.gap / unit, origin + (hit.a + hit.b) / (2 * unit)
    return Hit(gap, hit.normal, middle + gap / 2 * hit.normal, middle - gap / 2 * hit.normal)
