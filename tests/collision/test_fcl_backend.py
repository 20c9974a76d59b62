"""The FCL backend: closed forms, an exact oracle in overlap, and its use inside jit, vmap and scan."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import carom
from carom.collision.fcl_backend import fcl_proximities
from carom.collision.host import pair_rows as host_rows
from carom.collision.shapes import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, Sphere
from carom.engine import results
from carom.tests.collision.fcl_scenes import detect, random_q, shape_poses, two
from carom.tests.oracles import minkowski

EXACT = 1e-12  # closed forms within FCL, and planes
FCL = 1e-7  # what is left of FCL's tolerance at the scale it is used at, shapes of unit size
DEEP = 1e-4  # round shapes that overlap deeply: the search for the best direction stops there at worst
UP = np.array([0.0, 0.0, 1.0])
rng = np.random.default_rng(20)


def first(near, lane=()):
    """gap, normal, point_a, point_b of a lane's first row."""
    assert near.active[(*lane, 0)]
    return tuple(np.asarray(getattr(near, name)[(*lane, 0)]) for name in ("gap", "normal", "point_a", "point_b"))


def consistent(near):
    """The contract of Proximities, for all rows."""
    on = np.asarray(near.active)
    gap, n = np.asarray(near.gap)[on], np.asarray(near.normal)[on]
    np.testing.assert_allclose(np.linalg.norm(n, axis=-1), 1, atol=1e-12)
    between = np.asarray(near.point_a)[on] - np.asarray(near.point_b)[on]
    np.testing.assert_allclose(between, gap[:, None] * n, atol=1e-12)
    assert (np.asarray(near.pair)[~on] == -1).all()
    assert np.isposinf(np.asarray(near.gap)[~on]).all()
    assert (np.asarray(near.normal)[~on] == 0).all()


# -- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [0.9, 0.5, 0.3, 0.29999, 0.1, 1e-3])
def test_sphere_and_sphere(distance):
    direction = np.array([1.0, 2.0, -2.0]) / 3
    model, q = two(Sphere(0.1), Sphere(0.2), (1, 2, 3), np.array([1, 2, 3]) - distance * direction)
    near = detect(model, q)
    consistent(near)
    gap, normal, a, b = first(near)
    assert gap == pytest.approx(distance - 0.3, abs=EXACT)
    np.testing.assert_allclose(normal, direction, atol=1e-9)  # 1e-3 apart, of coordinates near 3: twelve digits
    np.testing.assert_allclose(a, np.array([1, 2, 3]) - 0.1 * direction, atol=1e-9)
    np.testing.assert_allclose(b, a - gap * normal, atol=EXACT)


def test_concentric_spheres_have_a_normal():
    near = detect(*two(Sphere(0.1), Sphere(0.2), (1, 2, 3), (1, 2, 3)))
    consistent(near)
    assert first(near)[0] == pytest.approx(-0.3, abs=FCL)


@pytest.mark.parametrize("height", [2.0, 0.1, 0.0, -0.3])
def test_sphere_and_tilted_plane(height):
    normal = np.array([2.0, -1.0, 2.0]) / 3
    b = carom.SceneBuilder()
    b.add_plane(normal=normal, offset=0.7)
    center = normal * (0.7 + 0.1 + height) + np.cross(normal, (5.0, 1.0, 2.0))
    b.add_body("ball", [Sphere(0.1)], mass=1.0, position=center)
    model, state = carom.compile_scene(b.build())
    near = detect(model, state.q)
    consistent(near)
    gap, n, _, on_ball = first(near)
    assert gap == pytest.approx(height, abs=EXACT)
    np.testing.assert_allclose(n, -normal, atol=EXACT)  # from B, the ball, to A, the plane
    np.testing.assert_allclose(on_ball, center - 0.1 * normal, atol=EXACT)


@pytest.mark.parametrize("height", [0.5, 0.01, -0.01, -0.15])
def test_sphere_over_a_box_face_and_a_corner(height):
    model, q = two(Box((0.5, 0.6, 0.7)), Sphere(0.2), (0, 0, 0), (0.1, -0.2, 0.9 + height))
    gap, normal, on_box, _ = first(detect(model, q))
    assert gap == pytest.approx(height, abs=FCL)
    np.testing.assert_allclose(normal, -UP, atol=FCL)
    np.testing.assert_allclose(on_box, (0.1, -0.2, 0.7), atol=FCL)
    corner, out = np.array([0.5, 0.6, 0.7]), np.ones(3) / np.sqrt(3)
    model, q = two(Box((0.5, 0.6, 0.7)), Sphere(0.2), (0, 0, 0), corner + (0.2 + height) * out)
    gap, normal, on_box, _ = first(detect(model, q))
    assert gap == pytest.approx(height, abs=FCL)
    np.testing.assert_allclose(normal, -out, atol=FCL)
    np.testing.assert_allclose(on_box, corner, atol=FCL)


@pytest.mark.parametrize("distance", [1.0, 0.3, 0.2, 1e-3])
def test_crossed_capsules(distance):
    lying = Rotation.from_euler("y", 90, degrees=True).as_quat(scalar_first=True)
    across = Rotation.from_euler("x", 90, degrees=True).as_quat(scalar_first=True)
    model, q = two(Capsule(0.1, 0.5), Capsule(0.2, 0.5), (0, 0, distance), (0.1, 0.2, 0), lying, across)
    gap, normal, a, _ = first(detect(model, q))
    assert gap == pytest.approx(distance - 0.3, abs=EXACT)
    np.testing.assert_allclose(normal, UP, atol=EXACT)
    np.testing.assert_allclose(a, (0.1, 0, distance - 0.1), atol=EXACT)


# -- an exact oracle, apart and in overlap ---------------------------------------------------------------------------

SHAPES = {
    "sphere": Sphere(0.5),
    "box": Box((0.5, 0.4, 0.6)),
    "capsule": Capsule(0.3, 0.5),
    "cylinder": Cylinder(0.4, 0.5),
    "ellipsoid": Ellipsoid((0.5, 0.3, 0.7)),
    "hull": ConvexHull(np.random.default_rng(4).normal(size=(9, 3)) * 0.5),
}
KINDS = list(SHAPES)


@pytest.mark.parametrize(("a", "b"), [(a, b) for i, a in enumerate(KINDS) for b in KINDS[i:]])
def test_gaps_of_convex_pairs(a, b):
    lanes = 12
    model, _ = two(SHAPES[a], SHAPES[b])
    q = random_q(rng, lanes, spread=1.2)
    assert np.ptp(q, axis=0).min() > 0
    near = detect(model, q)
    consistent(near)
    polytopes = {a, b} <= {"box", "hull", "capsule", "sphere"}
    for k in range(lanes):
        solids = [
            minkowski.Solid(
                kind, np.asarray(model.shape_size[i]), np.asarray(model.points[slice(*model.topology.shape_points[i])]),
                q[k, 7 * i : 7 * i + 3], q[k, 7 * i + 3 : 7 * i + 7],
            )
            for i, kind in enumerate(model.topology.shape_kinds)
        ]  # fmt: skip
        want, _ = minkowski.gap(solids[0], solids[1], 4000)
        gap, normal, _, _ = first(near, (k,))
        told = f"{a} {b}, lane {k}: gap {gap}, oracle {want}, q {q[k].tolist()}"
        assert abs(gap - want) <= (FCL if want > 0 or polytopes else DEEP), told
        # the normal parts the pair by as much as the gap says
        assert minkowski.separation(solids[0], solids[1], normal) >= want - (1e-5 if want > 0 or polytopes else DEEP), (
            told
        )


def test_gap_is_continuous_through_contact():
    model, q = two(Cylinder(0.4, 0.5), Ellipsoid((0.5, 0.3, 0.7)), quaternion_a=(0.5, 0.1, -0.7, 0.5))
    x = np.linspace(1.2, 0.5, 141)
    sweep = np.tile(np.asarray(q), (len(x), 1))
    sweep[:, 0] = x
    gaps = np.asarray(detect(model, sweep).gap[:, 0])
    assert gaps[0] > 0.05
    assert gaps[-1] < -0.05
    assert np.abs(np.diff(gaps)).max() <= x[0] - x[1] + 1e-6


def test_small_and_large_scenes_are_as_accurate():
    for size in (1e-3, 1e3):
        model, q = two(Cylinder(0.4 * size, 0.5 * size), Box((size, size, size)), (0, 0, 0.9 * size), (0, 0, -size))
        gap = float(detect(model, q).gap[0])
        assert gap == pytest.approx(0.4 * size, abs=1e-9 * size)


# -- manifolds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [0.01, 0.0, -0.01])
@pytest.mark.parametrize("yaw", [0.0, 0.3, 0.7])
def test_box_on_a_plane_and_on_a_box_has_four_corners(gap, yaw):
    turn = (np.cos(yaw / 2), 0, 0, np.sin(yaw / 2))
    corners = Rotation.from_quat(turn, scalar_first=True).apply([(x, y, 0) for x in (-0.3, 0.3) for y in (-0.2, 0.2)])
    on_box, q = two(Box((1, 1, 0.5)), Box((0.3, 0.2, 0.1)), (0, 0, -0.5), (0, 0, 0.1 + gap), quaternion_b=turn)
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("b", [Box((0.3, 0.2, 0.1))], mass=1.0, position=(0, 0, 0.1 + gap), quaternion=turn)
    on_plane, state = carom.compile_scene(b.build())
    for model, coordinates in ((on_box, q), (on_plane, state.q)):
        near = detect(model, coordinates)
        consistent(near)
        assert int(near.active.sum()) == 4
        np.testing.assert_allclose(near.gap[:4], gap, atol=FCL)
        np.testing.assert_allclose(near.normal[:4], np.tile(-UP, (4, 1)), atol=FCL)
        points = np.asarray(near.point_b[:4])
        np.testing.assert_allclose(points[:, 2], gap, atol=FCL)
        for corner in corners:
            assert np.linalg.norm(points[:, :2] - corner[:2], axis=1).min() < FCL


def test_rows_on_a_plane():
    b = carom.SceneBuilder()
    b.add_plane()
    lying = Rotation.from_euler("x", 90, degrees=True).as_quat(scalar_first=True)
    hull = ConvexHull([(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
    lowest = {"standing": 4, "lying": 2, "capsule": 2, "hull": 4, "ball": 1, "egg": 1}
    b.add_body("standing", [Cylinder(0.1, 0.2)], mass=1.0, position=(0, 0, 0.2))
    b.add_body("lying", [Cylinder(0.1, 0.2)], mass=1.0, position=(1, 0, 0.1), quaternion=lying)
    b.add_body("capsule", [Capsule(0.1, 0.2)], mass=1.0, position=(2, 0, 0.1), quaternion=lying)
    b.add_body("hull", [hull], mass=1.0, position=(3, 0, 0.1))
    b.add_body("ball", [Sphere(0.1)], mass=1.0, position=(4, 0, 0.1))
    b.add_body("egg", [Ellipsoid((0.1, 0.2, 0.3))], mass=1.0, position=(5, 0, 0.3))
    model, state = carom.compile_scene(b.build())
    near = detect(model, state.q, 0.05)
    consistent(near)
    for body, rows in enumerate(lowest.values(), start=1):
        mine = near.pair == model.topology.pairs.index((0, body))
        assert int(mine.sum()) == rows, model.topology.names[body - 1]
        np.testing.assert_allclose(near.gap[mine], 0, atol=EXACT)


# -- pairs, margins, broad phase -------------------------------------------------------------------------------------


def _crowd(n=50, exclude=()):
    makers = [
        lambda: Sphere(rng.uniform(0.1, 0.3)),
        lambda: Box(rng.uniform(0.1, 0.3, 3)),
        lambda: Capsule(rng.uniform(0.1, 0.2), 0.3),
        lambda: ConvexHull(rng.normal(size=(8, 3)) * 0.2),
    ]
    b = carom.SceneBuilder()
    b.add_plane(offset=-1.0)
    for k in range(n):
        turn = rng.normal(size=4)
        turn /= np.linalg.norm(turn)
        b.add_body(f"b{k}", [makers[k % 4]()], mass=1.0, position=rng.uniform(-1, 1, 3), quaternion=turn)
    for pair in exclude:
        b.exclude(*pair)
    return carom.compile_scene(b.build())


def test_broad_phase_loses_no_pair_of_fifty_bodies():
    model, state = _crowd()
    every = detect(model, state.q)  # no margin: every pair, no tree
    assert int((every.pair[every.active] >= 0).sum()) >= len(model.topology.pairs)
    for margin in (0.0, 0.05, 0.5):
        near = detect(model, state.q, margin)
        consistent(near)
        want = np.asarray(every.active & (every.gap <= margin))
        assert 0 < want.sum() < len(want)
        got = np.asarray(near.active)
        for name in ("pair", "gap", "normal", "point_a", "point_b"):
            np.testing.assert_array_equal(np.asarray(getattr(near, name))[got], np.asarray(getattr(every, name))[want])
        assert int(near.needed) == want.sum()


def test_margin_is_a_distance_along_any_axis():
    model, q = two(Box((0.5, 0.5, 0.5)), Sphere(0.5))
    for axis in range(3):
        for gap, margin, near in ((0.099, 0.1, True), (0.101, 0.1, False), (-0.01, 0.0, True), (0.01, 0.0, False)):
            lane = np.asarray(q).copy()
            lane[7 + axis] = 1 + gap
            assert bool(detect(model, lane, margin).active[0]) is near, (axis, gap, margin)


def test_far_from_the_origin():
    model, q = two(Cylinder(0.4, 0.5), Box((0.5, 0.4, 0.6)), (0, 0, 0), (0.3, 0.2, 1.3), (0.9, 0.1, 0.2, 0.1))
    far = np.asarray(q) + np.concatenate([(1e5, -2e5, 3e5), np.zeros(4)] * 2)
    gaps = [float(detect(model, x, margin).gap[0]) for x in (q, far) for margin in (np.inf, 1.0)]
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)  # coordinates near 3e5 have eleven digits after the point


def test_filtered_pairs_are_not_reported():
    model, state = _crowd(12, exclude=[("b0", "b1"), ("b2", "world")])
    shapes = {f"b{k}": k + 1 for k in range(12)}
    reported = {model.topology.pairs[k] for k in np.asarray(detect(model, state.q).pair) if k >= 0}
    assert reported == set(model.topology.pairs)
    assert (shapes["b0"], shapes["b1"]) not in reported
    assert (0, shapes["b2"]) not in reported
    assert (0, shapes["b3"]) in reported


def test_a_scene_of_more_rows_than_room_keeps_the_closest(monkeypatch):
    model, state = _crowd(12)
    every = detect(model, state.q)
    monkeypatch.setattr(host_rows, "room", lambda topology: 20)
    host_rows.pair_table.cache_clear()
    near = detect(model, state.q)
    host_rows.pair_table.cache_clear()
    assert near.gap.shape == (20,)
    assert int(near.code) == results.PAIRS_FULL
    assert int(near.needed) == int(every.active.sum()) > 20
    np.testing.assert_array_equal(np.sort(near.gap), np.sort(np.asarray(every.gap))[:20])


# -- jit, vmap, scan, batches ----------------------------------------------------------------------------------------


def test_inside_jit_vmap_and_scan():
    model, _ = two(SHAPES["box"], SHAPES["ellipsoid"])
    q = random_q(rng, 6, spread=1.5)
    one_by_one = [detect(model, x) for x in q]
    want = jax.tree.map(lambda *xs: np.stack(xs), *one_by_one)
    together = detect(model, q)
    jitted = jax.jit(detect)(model, q)
    vmapped = jax.jit(jax.vmap(detect, (None, 0)))(model, q)
    twice = jax.vmap(jax.vmap(detect, (None, 0)), (None, 0))(model, q.reshape(2, 3, -1))
    scanned = jax.jit(lambda q: jax.lax.scan(lambda c, x: (c, detect(model, x)), 0, q)[1])(q)
    for got in (together, jitted, vmapped, scanned, jax.tree.map(lambda x: x.reshape(6, *x.shape[2:]), twice)):
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-9), got, want)


def test_batched_sizes_margins_and_points():
    model, q = two(Sphere(0.1), ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]), (2, 2, 2), (0, 0, 0))
    radii = np.array([0.1, 0.2, 0.5])
    sizes = np.zeros((3, 2, 3))
    sizes[:, 0, 0] = radii
    apart = np.linalg.norm([5 / 3] * 3)  # from the centre to the middle of the slanted face
    near = detect(model.replace(shape_size=jnp.asarray(sizes)), q)
    np.testing.assert_allclose(near.gap[:, 0], apart - radii, atol=FCL)
    # both batched, by vmap over sizes of lanes that are batched themselves
    qs = np.tile(np.asarray(q), (2, 1))
    qs[1, :3] = 3
    near = jax.vmap(lambda size: detect(model.replace(shape_size=size), qs))(jnp.asarray(sizes))
    further = np.linalg.norm([8 / 3] * 3)
    np.testing.assert_allclose(near.gap[..., 0], np.array([apart, further]) - radii[:, None], atol=FCL)
    grown = np.asarray(model.points) * np.array([1.0, 2.0, 3.0])[:, None, None]
    near = detect(model.replace(points=jnp.asarray(grown)), q)
    np.testing.assert_allclose(near.gap[:, 0], (6 - np.array([1, 2, 3])) / np.sqrt(3) - 0.1, atol=FCL)
    near = fcl_proximities(model, *shape_poses(model, q), jnp.asarray([0.1, 10.0]))
    np.testing.assert_array_equal(near.active[:, 0], [False, True])


def test_single_precision():
    model, q = two(Sphere(0.1), Box((0.5, 0.5, 0.5)), (0, 0, 0.65), (0, 0, 0), dtype=np.float32)
    near = detect(model, q)
    assert near.gap.dtype == np.float32
    assert near.pair.dtype == np.int32
    assert float(near.gap[0]) == pytest.approx(0.05, abs=1e-6)  # float32 coordinates


# -- hostile input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [np.inf, 0.5])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_poses_that_are_not_finite(bad, margin):
    model, state = _crowd(8)
    q = np.tile(np.asarray(state.q), (2, 1))
    q[1, 7 * 3] = bad  # of the fourth body, in the second lane
    near = detect(model, q, margin)
    consistent(near)
    assert near.code.tolist() == [results.OK, results.NOT_FINITE]
    hit = [4 in model.topology.pairs[k] for k in np.asarray(near.pair[0])[np.asarray(near.active[0])]]
    assert any(hit)
    kept = np.asarray(near.gap[0])[np.asarray(near.active[0])][~np.array(hit)]
    np.testing.assert_array_equal(np.asarray(near.gap[1])[np.asarray(near.active[1])], kept)


@pytest.mark.slow
def test_sizes_of_zero_and_deep_overlaps_end():
    shapes = [*SHAPES.values()]
    for a in shapes:
        for b in shapes:
            model, q = two(a, b, (0, 0, 0), (0, 0, 0))
            near = detect(model, q)
            consistent(near)
            assert float(near.gap[0]) < -0.3
    model, q = two(Sphere(0.1), Box((1, 1, 1)), (0, 0, 3.0), (0, 0, 0))
    near = detect(model.replace(shape_size=jnp.zeros((2, 3))), q)
    consistent(near)
    assert float(near.gap[0]) == pytest.approx(3.0, abs=1e-6)


def test_says_how_to_install_what_is_missing():
    program = (
        "import sys; sys.modules['fcl'] = None; import numpy as np; from carom.collision import fcl_backend as f\n"
        "try:\n    f.fcl_proximities(None, np.zeros((0, 3)), np.zeros((0, 3, 3)))\n"
        "except ImportError as error:\n    print(error)\n"
    )
    text = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install python-fcl" in text
    assert "backend='device'" in text
