"""Flat contacts: the corners of the polygon in which two faces meet, or four of them that span as much as any."""

from dataclasses import replace
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import carom
from carom.collision.geometry.manifold import spread
from carom.collision.geometry.near import Near
from carom.engine.algebra.vec3 import Vec3
from carom.tests.oracles.minkowski import Solid
from carom.tests.oracles.pair_scene import Sample, pair_scene
from carom.tests.oracles.placements import NO_POINTS, PRISMS, UPRIGHT, Placement, prism
from carom.tests.oracles.polygons import area, common, largest_four
from carom.tests.oracles.surfaces import residual

EXACT = 1e-12  # points and gaps at unit size
LEAST = 1 - 1e-9  # of the largest area, which rounding may fall short of
SINGLE = 1e-5  # gaps in single precision
COUNT = 48  # one call
SQUARE = np.array([[1.0, 1], [-1, 1], [-1, -1], [1, -1]])


def _solid(kind: str, size=(0, 0, 0), points=NO_POINTS, position=(0, 0, 0), quaternion=UPRIGHT) -> Solid:
    return Solid(kind, np.array(size, float), points, np.array(position, float), quaternion)


def _yaw(angle: float):
    return np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])


def _block(name: str, half, position, yaw: float) -> Solid:
    """A box, or a hull that is one."""
    turn = _yaw(yaw)
    if name == "box":
        return _solid("box", half, position=position, quaternion=turn)
    return _solid("hull", points=_cube(name) * half, position=position, quaternion=turn)


def _cube(name: str):
    """The corners of the cube in the order in which the compiled scene holds them."""
    return next(p for p in pair_scene(("plane", name)).points if len(p))


def _ground(name: str, half, top: float) -> Solid:
    """A plane, or a block whose upper face is at a height."""
    return _solid("plane", position=(0, 0, top)) if name == "plane" else _block(name, half, (0, 0, top - half[2]), 0.0)


def _detected(names, placements) -> Sample:
    rows = pair_scene(names).detect(placements)
    return Sample(names, placements, rows, np.full(len(placements), np.nan))


def _check_rows(s: Sample, wanted, gaps) -> None:
    """Each placement's rows are exactly the wanted points of B (k, 2), in any order, at the gap, A below B."""
    up = -1.0  # the ground is A: the normal is from B to A
    for i, (points, gap) in enumerate(zip(wanted, gaps, strict=True)):
        on = s.rows.active[i]
        where = f"{'-'.join(s.names)} [{i}] {s.placements[i].label}: want {points}, got {s.rows.point_b[i][on]}"
        assert on.sum() == len(points), where
        np.testing.assert_allclose(s.rows.gap[i][on], gap, atol=EXACT, err_msg=where)
        np.testing.assert_allclose(s.rows.normal[i][on], [[0, 0, up]] * len(points), atol=EXACT, err_msg=where)
        got = s.rows.point_b[i][on][:, :2]
        apart = np.linalg.norm(got[:, None] - np.asarray(points), axis=-1)
        assert apart.min(0).max() < EXACT, where
        assert apart.min(1).max() < EXACT, where


GROUNDS = [("plane", "box"), ("plane", "cube"), ("box", "box"), ("box", "cube"), ("cube", "cube")]


def _resting(names, overhang: bool):
    """Blocks on the ground in any yaw, their gaps, and the corners of what the two faces share."""
    rng = np.random.default_rng(11 + overhang)
    placements, gaps, shared = [], [], []
    for _ in range(COUNT):
        wide = np.array([*rng.uniform(0.8, 1.2, 2), 0.3]) * (1.0 if overhang else 2.0)
        half, yaw = rng.uniform(0.3, 0.8, 3), rng.uniform(0, 2 * np.pi)
        gap = rng.choice([0.0, 1e-4, -1e-4, -0.01])
        at = rng.uniform(-1.2, 1.2, 2) if overhang else rng.uniform(-0.2, 0.2, 2)
        top = rng.normal()
        block = _block(names[1], half, (*at, top + half[2] + gap), yaw)
        ground = _ground(names[0], wide, top)
        below = block.rotation[:2, :2] @ (SQUARE * half[:2]).T + at[:, None]
        corners = below.T if names[0] == "plane" else common(below.T, SQUARE * wide[:2])
        if area(corners) < 0.05:  # hardly on it: another face, or an edge, may be nearer
            continue
        placements.append(Placement("overhanging" if overhang else "resting", ground, block))
        gaps.append(gap)
        shared.append(corners)
    return placements, gaps, shared


@pytest.mark.parametrize("names", GROUNDS, ids="-".join)
def test_a_block_stands_on_its_four_corners_in_any_yaw(names):
    placements, gaps, shared = _resting(names, overhang=False)
    assert all(len(corners) == 4 for corners in shared)
    _check_rows(_detected(names, placements), shared, gaps)


@pytest.mark.parametrize("names", GROUNDS[2:], ids="-".join)
@pytest.mark.slow
def test_an_overhanging_block_stands_on_what_the_faces_share(names):
    placements, gaps, shared = _resting(names, overhang=True)
    few = [i for i, corners in enumerate(shared) if len(corners) <= 4]
    assert 3 < len(few) < len(shared) - 3  # both kinds were drawn
    s = _detected(names, placements)
    _check_rows(
        Sample(names, [placements[i] for i in few], type(s.rows)(*(x[few] for x in s.rows)), s.gaps[few]),
        [shared[i] for i in few], [gaps[i] for i in few],
    )  # fmt: skip
    got = np.array([area(b[on, :2]) for b, on in zip(s.rows.point_b, s.rows.active, strict=True)])
    want = np.array([largest_four(corners) for corners in shared])
    s.demand("area lost", want * LEAST - got, 0.0, got=got, want=want, points=s.rows.point_b)
    for b, on, corners in zip(s.rows.point_b, s.rows.active, shared, strict=True):
        assert area(np.concatenate([corners, b[on, :2]])) <= area(corners) + EXACT  # no point is outside


@pytest.mark.parametrize("ground", ["plane", "box"])
@pytest.mark.parametrize(
    "sides", [pytest.param(n, marks=pytest.mark.exhaustive if n in (6, 12) else ()) for n in PRISMS]
)
@pytest.mark.slow
def test_a_prism_on_its_face_loses_no_area(ground, sides):
    names, rng, placements = (ground, f"prism{sides}"), np.random.default_rng(sides), []
    points = pair_scene(names).points[1]
    for _ in range(8):
        turn, at = _yaw(rng.uniform(0, 2 * np.pi)), (0.1, -0.2, 0.5 - 1e-5)
        body = _solid("hull", points=points, position=at, quaternion=turn)
        placements.append(Placement("standing", _ground(ground, (2, 2, 0.3), 0.0), body))
    s = _detected(names, placements)
    got = np.array([area(b[on, :2]) for b, on in zip(s.rows.point_b, s.rows.active, strict=True)])
    want = np.full(8, largest_four(prism(sides)[:sides, :2]))
    # among more corners than the library compares one by one, half a percent may be lost
    s.demand("area lost", want * (LEAST if sides <= 12 else 0.995) - got, 0.0, got=got, want=want)
    assert (s.rows.active.sum(1) == 4).all()


FLOORS = ["plane", "box"]


def _on_floor(floor: str, kind: str, size, turn, height: float) -> list[Placement]:
    """A round body on a wide floor whose top is at z = 0, in random yaws."""
    rng, found = np.random.default_rng(5), []
    for gap in (0.0, 1e-5, -1e-5, -0.01):
        q = (Rotation.from_euler("z", rng.uniform(0, 7)) * turn).as_quat(scalar_first=True)
        body = _solid(kind, size, position=(0.2, -0.1, height + gap), quaternion=q)
        found.append(Placement(f"gap {gap}", _ground(floor, (3, 3, 0.3), 0.0), body))
    return found


LYING = Rotation.from_euler("y", np.pi / 2)


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("kind", ["capsule", "cylinder"])
@pytest.mark.slow
def test_a_rod_on_its_side_touches_at_its_two_ends(floor, kind):
    placements = _on_floor(floor, kind, (0.3, 0.7, 0), LYING, 0.3)
    ends = [p.b.to_world([[0, 0, 0.7], [0, 0, -0.7]])[:, :2] for p in placements]
    _check_rows(_detected((floor, kind), placements), ends, [0.0, 1e-5, -1e-5, -0.01])


@pytest.mark.parametrize("block", ["box", "cube"])
@pytest.mark.slow
def test_a_tilted_capsule_with_its_lower_end_over_a_border_ends_on_its_cap_or_its_side(block):
    # under the border it ends on the cap where less of the axis is over the block than the cap bulges, else on the side
    names, rng, placements, want = ("capsule", block), np.random.default_rng(3), [], []
    radius, half = 0.7, 0.3
    for _ in range(COUNT):
        tilt, over = rng.uniform(0.01, 0.09), rng.uniform(0.005, 0.1)  # [rad], [m] of the axis over the block
        height = rng.uniform(0.6, 0.75)  # of the lower end
        away = np.array([np.cos(tilt), 0.0, np.sin(tilt)])
        middle = np.array([0.5 - over, rng.uniform(-0.3, 0.3), height]) + half * away
        turn = Rotation.from_euler("y", np.pi / 2 - tilt).as_quat(scalar_first=True)
        capsule = _solid("capsule", (radius, half, 0), position=middle, quaternion=turn)
        placements.append(Placement("over a border", capsule, _ground(block, (0.5, 0.5, 0.5), 0.0)))
        on_cap = over < radius * np.sin(tilt)
        side = height + over * np.tan(tilt) - radius / np.cos(tilt)
        want.append([height - radius, height - np.sqrt(radius**2 - over**2) if on_cap else side])
    s, want = _detected(names, placements), np.array(want)
    assert (want[:, 1] > want[:, 0] + 1e-3).sum() > 5  # the second row is not the first again
    np.testing.assert_array_equal(s.rows.active, [[True, True, False, False]] * COUNT)
    s.demand("gap", abs(s.rows.gap[:, :2] - want).max(1), EXACT, got=s.rows.gap, want=want)
    off = np.stack([residual(p.a, x) for p, x in zip(placements, s.rows.point_a[:, :2], strict=True)])
    s.demand("a point is off the capsule", abs(off).max(1), EXACT, off=off)


def test_capsules_a_little_skew_touch_in_points_of_their_surfaces():
    rng, names, placements = np.random.default_rng(6), ("capsule", "capsule"), []
    for _ in range(COUNT):
        (r, h, _), (r2, h2, _) = sizes = rng.uniform(0.3, 0.8, (2, 3)) * [1, 1, 0]
        turn = Rotation.from_rotvec([*rng.uniform(-0.1, 0.1, 2), 0.0]).as_quat(scalar_first=True)
        apart = (r + r2) * rng.uniform(0.2, 1.1)
        at = (apart, 0.0, rng.uniform(-0.5, 0.5) * (h + h2))
        bodies = _solid("capsule", sizes[0]), _solid("capsule", sizes[1], position=at, quaternion=turn)
        placements.append(Placement("skew", *bodies))
    s = _detected(names, placements)
    on = s.rows.active
    assert on[:, 1].sum() > 10  # two rows, of which the second is not everywhere the first again
    assert (s.rows.gap[on[:, 1], 1] > s.rows.gap[on[:, 1], 0] + 1e-3).sum() > 5
    for side, points in (("a", s.rows.point_a), ("b", s.rows.point_b)):
        off = np.stack([residual(getattr(p, side), x) for p, x in zip(placements, points, strict=True)])
        s.demand(f"a point is off {side}", np.where(on, abs(off), 0.0).max(1), EXACT, off=off)
    apart = s.rows.point_a - s.rows.point_b - np.where(on, s.rows.gap, 0.0)[..., None] * s.rows.normal
    s.demand("a - b is not gap normal", np.where(on, np.linalg.norm(apart, axis=-1), 0.0).max(1), EXACT)
    s.demand("the second is closer", np.where(on[:, 1], s.rows.gap[:, 0] - s.rows.gap[:, 1], 0.0), EXACT)


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.slow
def test_a_standing_cylinder_touches_at_four_points_of_its_rim(floor):
    placements = _on_floor(floor, "cylinder", (0.3, 0.7, 0), Rotation.identity(), 0.7)
    s = _detected((floor, "cylinder"), placements)
    assert s.rows.active.all()
    np.testing.assert_allclose(s.rows.gap, np.array([0.0, 1e-5, -1e-5, -0.01])[:, None] * np.ones(4), atol=EXACT)
    off = np.linalg.norm(s.rows.point_b[..., :2] - np.array([0.2, -0.1]), axis=-1) - 0.3
    np.testing.assert_allclose(off, 0.0, atol=EXACT)
    for b in s.rows.point_b:
        assert area(b[:, :2]) >= 2 * 0.3**2 * LEAST  # a square on the rim is the largest


def test_a_standing_capsule_and_a_ball_touch_at_one_point():
    for kind, size, height in (("capsule", (0.3, 0.7, 0), 1.0), ("sphere", (0.3, 0, 0), 0.3)):
        s = _detected(("plane", kind), _on_floor("plane", kind, size, Rotation.identity(), height))
        np.testing.assert_array_equal(np.isclose(s.rows.gap, s.rows.gap[:, :1], atol=1e-3).sum(1), 1)


@pytest.mark.parametrize("names", GROUNDS, ids="-".join)
def test_a_tilted_block_keeps_its_rows_on_its_surface_and_the_closest_first(names):
    rng = np.random.default_rng(2)
    placements, _, _ = _resting(names, overhang=False)
    tilted = []
    for p in placements:
        tilt = Rotation.from_rotvec(rng.normal(size=3) * [1e-3, 1e-3, 0])
        q = tilt * Rotation.from_quat(p.b.quaternion, scalar_first=True)
        tilted.append(Placement("tilted", p.a, replace(p.b, quaternion=q.as_quat(scalar_first=True))))
    s = _detected(names, tilted)
    assert (s.rows.active.sum(1) >= 3).all()
    lowest = []
    for p in tilted:
        corners = p.b.parts[0]
        top = p.a.position[2] + (p.a.parts[0][:, 2].max() - p.a.position[2] if p.a.kind != "plane" else 0.0)
        lowest.append(np.sort(corners[:, 2] - top)[:4])
    lowest = np.array(lowest)
    if names[0] == "plane":
        s.demand("closest", abs(s.rows.gap[:, 0] - lowest[:, 0]), EXACT, got=s.rows.gap, want=lowest)
        got = np.sort(np.where(s.rows.active, s.rows.gap, np.inf), axis=1)
        error = np.nan_to_num(np.where(s.rows.active, abs(got - lowest), 0.0), posinf=0.0).max(1)
        s.demand("corners", error, EXACT, got=got, want=lowest)
    # the deepest corner's depth and the contact's differ by the tilt's cosine at most
    s.demand("closest", abs(s.rows.gap[:, 0] - lowest[:, 0]), 1e-5, got=s.rows.gap, want=lowest)


@pytest.mark.parametrize("name", ["box", "cube"])
def test_where_edges_cross_under_faces_that_lean_on_each_other_the_faces_have_rows_too(name):
    """The closest points are on two edges, and nearly all of what the faces share is within the rows."""
    rng, tilted, shared = np.random.default_rng(5), [], []
    placements, gaps, polygons = _resting((name, name), overhang=True)
    for p, gap, polygon in zip(placements, gaps, polygons, strict=True):
        if gap < 0:
            continue  # the deepest point is a corner then
        tilt = Rotation.from_rotvec([*(rng.choice([-1, 1], 2) * rng.uniform(0.001, 0.01, 2)), 0.0])
        q = tilt * Rotation.from_quat(p.b.quaternion, scalar_first=True)
        tilted.append(Placement("leaning", p.a, replace(p.b, quaternion=q.as_quat(scalar_first=True))))
        shared.append(area(polygon))
    s = _detected((name, name), tilted)
    crossing = abs(s.rows.normal[:, 0, 2]) < 1 - 1e-9
    assert crossing.sum() > 8
    assert (s.rows.active[crossing].sum(1) >= 3).all()
    closest = np.where(s.rows.active, s.rows.gap, np.inf).min(1)
    np.testing.assert_array_equal(s.rows.gap[:, 0], closest)
    spanned = [area(ConvexHull(x[on][:, :2]).points[ConvexHull(x[on][:, :2]).vertices])
               for x, on in zip(s.rows.point_b[crossing], s.rows.active[crossing], strict=True)]  # fmt: skip
    part = np.array(spanned) / np.array(shared)[crossing]
    assert np.median(part) > 0.7
    assert part.min() > 0.3, part
    for side, points in (("a", s.rows.point_a), ("b", s.rows.point_b)):
        off = np.stack([residual(getattr(p, side), x) for p, x in zip(tilted, points, strict=True)])
        s.demand(side, np.where(s.rows.active, abs(off), 0).max(1), 1e-9)


def test_in_single_precision_crossing_edges_are_not_taken_for_faces():
    rng, names, tilted = np.random.default_rng(4), ("box", "box"), []
    for p in _resting(names, overhang=True)[0]:
        tilt = Rotation.from_rotvec([*(rng.choice([-1, 1], 2) * rng.uniform(0.02, 0.2, 2)), 0.0])
        q = tilt * Rotation.from_quat(p.b.quaternion, scalar_first=True)
        tilted.append(Placement("tilted", p.a, replace(p.b, quaternion=q.as_quat(scalar_first=True))))
    s, single = _detected(names, tilted), pair_scene(names, np.float32).detect(tilted)
    assert (s.rows.active.sum(1) == 1).sum() > 10  # where edges cross
    np.testing.assert_array_equal(single.active, s.rows.active)
    s.demand("gap", abs(single.gap[:, 0] - s.rows.gap[:, 0]), SINGLE, got=single.gap, want=s.rows.gap)


def _upright_boxes(half: tuple[float, float, float], count: int) -> tuple[carom.Model, np.ndarray]:
    """Two equal boxes, and coordinates (count, 2, 7) in which both are at the origin."""
    b = carom.SceneBuilder()
    for name in "ab":
        b.add_body(name, [carom.Box(half)])
    model, _ = carom.compile_scene(b.build(), overlaps="ignore")
    q = np.zeros((count, 2, 7))
    q[:, :, 3] = 1
    return model, q


def test_boxes_tilted_by_a_rounding_keep_four_points():
    """Two boxes on each other, tilted by 1e-15 to 1e-12: clipped points far away must not spoil the others."""
    count, rng = 2000, np.random.default_rng(0)
    model, q = _upright_boxes((0.5, 0.5, 0.5), count)
    q[:, :, :2] = rng.uniform(-0.01, 0.01, (count, 2, 2))
    q[:, :, 2] = 0.5, 1.5
    q[:, :, 4:] = rng.normal(size=(count, 2, 3)) * 10.0 ** rng.uniform(-15, -12, (count, 1, 1))
    rows = carom.detect(model, jnp.asarray(q.reshape(count, 14)), margin=1e-8).active.sum(1)
    assert (rows == 4).all(), np.unique(rows, return_counts=True)


def test_the_normal_of_boxes_that_nearly_touch_is_their_faces():
    """Of nearest points that are 1e-14 to 1e-9 m apart, rounding turns the direction by up to 1e-3."""
    count, rng = 4000, np.random.default_rng(1)
    model, q = _upright_boxes((0.2, 0.3, 0.2), count)
    q[:, :, 0] = rng.uniform(-0.1, 0.1, (count, 2))
    q[:, :, 2] = 0.2, 0.6
    q[:, :, 5] = rng.normal(size=(count, 2)) * 1e-12
    q[:, 1, 2] += 10.0 ** rng.uniform(-14, -9, count)
    rows = carom.detect(model, jnp.asarray(q.reshape(count, 14)), margin=1e-8)
    tilt = np.hypot(*np.moveaxis(np.asarray(rows.normal), -1, 0)[:2])
    assert tilt[np.asarray(rows.active)].max() < 2e-11


@pytest.mark.parametrize("roll", [1e-6, 1e-3, 0.1])
def test_what_a_rolling_prism_touches_with_is_kept(roll):
    """Of forty corners, many of which a small tilt would put down, both ends of the edge on the floor."""
    turns = 2 * np.pi * (np.arange(20) + 0.5) / 20
    ring = np.stack([0.02 * np.sin(turns), -0.02 * np.cos(turns)], 1)
    corners = np.array([[x, *yz] for yz in ring for x in (-0.2, 0.2)])
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("prism", [carom.ConvexHull(corners)], mass=1.0)
    model, _ = carom.compile_scene(b.build(), overlaps="ignore")
    turn = Rotation.from_rotvec([roll, 1e-9, 0.0])
    low = turn.apply(corners)[:, 2].min()
    q = np.array([0.0, 0.0, -low, *turn.as_quat(scalar_first=True)])
    rows = carom.detect(model, jnp.asarray(q))
    touching = np.asarray(rows.active & (rows.gap < 1e-9))
    assert touching.sum() == 2
    np.testing.assert_allclose(np.ptp(np.asarray(rows.point_b)[touching][:, 0]), 0.4, rtol=1e-6)


@pytest.mark.parametrize("tilt", [0, 1e-9, 1e-6, 1e-4])
def test_the_corners_of_a_face_are_kept_whatever_hovers(tilt):
    """Stones of twelve random corners that come down on each of their triangles, also on thin ones: a corner that
    hovers farther out must not make room for what touches, or is about to."""
    rng, stones = np.random.default_rng(3), 12
    for _ in range(stones):
        points = rng.normal(size=(12, 3))
        hull = ConvexHull(points)
        b = carom.SceneBuilder()
        b.add_plane()
        b.add_body("stone", [carom.ConvexHull(points)], mass=1.0)
        model, _ = carom.compile_scene(b.build(), overlaps="ignore")
        poses = []
        for normal in hull.equations[:, :3]:
            down = Rotation.align_vectors([[0, 0, -1.0]], [normal])[0]
            turn = Rotation.from_rotvec([tilt * rng.normal(), tilt * rng.normal(), 0]) * down
            poses.append([0, 0, -turn.apply(points)[:, 2].min(), *turn.as_quat(scalar_first=True)])
        rows = carom.detect(model, jnp.asarray(np.array(poses)), margin=1.0)
        for k, (corners, pose) in enumerate(zip(hull.simplices, poses, strict=True)):
            placed = Rotation.from_quat(pose[3:], scalar_first=True).apply(points[corners]) + pose[:3]
            got = np.asarray(rows.point_b)[k][np.asarray(rows.active)[k]]
            nearest = np.linalg.norm(got[:, None] - placed, axis=-1).min(0)
            assert (nearest < 1e-9).all()


@pytest.mark.parametrize(("rows", "count", "tilt"), [
    (24, 3, 0), (24, 8, 0), (24, 9, 0), (24, 24, 0), (24, 4, 0.02), (24, 8, 1e-8), (24, 14, 1e-8), (64, 8, 0),
    (64, 40, 0),
])  # fmt: skip
def test_what_is_spread_is_as_large_as_any_four(rows, count, tilt):
    """Points of a ring, level or on a tilted face, among rows that are not there: however many there are. On a tilted
    face the lowest is one of the four."""
    rng, lanes = np.random.default_rng(count), 8
    angle, radius = rng.uniform(0, 2 * np.pi, (count, lanes)), np.sqrt(rng.uniform(0.5, 1, (count, lanes)))
    ring = np.array([radius * np.cos(angle), radius * np.sin(angle), tilt * radius * np.cos(angle)])
    points, here = rng.uniform(-1, 1, (3, rows, lanes)), np.zeros((rows, lanes), bool)
    for lane in range(lanes):
        places = rng.permutation(rows)[:count]
        points[:, places, lane], here[places, lane] = ring[:, :, lane], True
    b = Vec3(*map(jnp.asarray, points))
    up = Vec3(*(jnp.full(lanes, z) for z in (0.0, 0.0, 1.0)))
    found = jax.jit(spread)(Near(jnp.where(jnp.asarray(here), b.z, jnp.inf), up, b, b), up)
    least = 0.95 if count > 24 else LEAST  # of many, the extreme ones are looked at first
    for lane in range(lanes):
        own = ring[:2, :, lane].T
        four = np.array([[row.b.x[lane], row.b.y[lane]] for row in found if np.isfinite(row.gap[lane])])
        if tilt:
            lowest = int(ring[2, :, lane].argmin())
            assert float(found[0].gap[lane]) == ring[2, lowest, lane]
            others = (own[[lowest, *three]] for three in combinations(set(range(count)) - {lowest}, 3))
            assert area(four) >= least * max(map(area, others))
        else:
            corners = own[ConvexHull(own).vertices]
            assert area(four) >= least * largest_four(corners)
