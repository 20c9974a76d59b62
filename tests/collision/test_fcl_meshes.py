"""The FCL backend with what is not convex: channels, tori, open surfaces, heightfields, meshes on meshes."""

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import carom
from carom.collision.shapes import Box, Capsule, Cylinder, Ellipsoid, Heightfield, Mesh, Sphere
from carom.tests.collision.fcl_scenes import detect, random_q, two

FCL = 1e-7  # what is left of FCL's tolerance at the scale it is used at, shapes of unit size
UP = np.array([0.0, 0.0, 1.0])
rng = np.random.default_rng(8)


def raw(surface):
    return Mesh(surface, convex="none")


def channel():
    """A U along x, 4 long; floor and walls 1 thick; 3 wide, 2 high, so room for y from 1 to 2 above z = 1."""
    outline = [(0, 0), (3, 0), (3, 2), (2, 2), (2, 1), (1, 1), (1, 2), (0, 2)]
    vertices = [(x, y, z) for x in (-2, 2) for y, z in outline]
    ends = [(0, 1, 4), (0, 4, 5), (1, 2, 3), (1, 3, 4), (0, 5, 6), (0, 6, 7)]
    faces = [(c, b, a) for a, b, c in ends] + [(a + 8, b + 8, c + 8) for a, b, c in ends]
    for i in range(8):
        j = (i + 1) % 8
        faces += [(i, j, j + 8), (i, j + 8, i + 8)]
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(4 * 5)
    return mesh


def over_static(shape, *bodies):
    """Model and q of a static shape at the origin and bodies (shape, position)."""
    b = carom.SceneBuilder()
    b.add_static("ground", [shape])
    for k, (moving, position) in enumerate(bodies):
        b.add_body(f"b{k}", [moving], mass=1.0, position=position)
    model, state = carom.compile_scene(b.build())
    return model, state.q


def first(model, q):
    near = detect(model, q)
    assert bool(near.active[0])
    gap, n = float(near.gap[0]), np.asarray(near.normal[0])
    np.testing.assert_allclose(near.point_a[0] - near.point_b[0], gap * n, atol=1e-12)
    return gap, n, np.asarray(near.point_a[0]), np.asarray(near.point_b[0])


# -- channel and torus: not their hulls ------------------------------------------------------------------------------

BODIES = [Sphere(0.2), Box((0.3, 0.2, 0.2)), Capsule(0.2, 0.3, quaternion=(np.sqrt(0.5), 0, np.sqrt(0.5), 0))]
BODIES += [Cylinder(0.2, 0.2), Ellipsoid((0.3, 0.2, 0.2)), raw(trimesh.creation.box(extents=(0.6, 0.4, 0.4)))]


@pytest.mark.parametrize("shape", BODIES, ids=lambda s: s.kind)
@pytest.mark.parametrize("gap", [0.1, 1e-6, 0.0, -1e-6, -0.01, -0.1])
def test_a_body_in_a_channel(shape, gap):
    model, q = over_static(raw(channel()), (shape, (0.1, 1.5, 1.2 + gap)))
    got, normal, on_floor, on_body = first(model, q)
    assert got == pytest.approx(gap, abs=FCL)
    np.testing.assert_allclose(normal, -UP, atol=1e-4)  # from the body, B, to the channel, A
    assert on_floor[2] == pytest.approx(1.0, abs=FCL)
    assert on_body[2] == pytest.approx(1.0 + gap, abs=FCL)


@pytest.mark.parametrize("gap", [0.05, -0.05])
def test_a_body_at_the_channels_wall(gap):
    got, normal, *_ = first(*over_static(raw(channel()), (Sphere(0.2), (0.1, 1.2 + gap, 1.6))))
    assert got == pytest.approx(gap, abs=FCL)
    np.testing.assert_allclose(normal, (0, -1, 0), atol=1e-6)


@pytest.mark.parametrize("shape", BODIES, ids=lambda s: s.kind)
@pytest.mark.parametrize("gap", [0.1, -0.05])
def test_the_other_way_around(shape, gap):
    turn = np.array([0.5, 0.5, 0.5, 0.5])  # x to y to z to x
    room, to_world = np.array([0.1, 1.5, 1.2 + gap]), Rotation.from_quat(turn, scalar_first=True).apply
    origin = np.array([3.0, -2.0, 5.0])
    model, q = two(shape, raw(channel()), origin + to_world(room), origin, turn, turn)
    got, normal, on_body, on_floor = first(model, q)
    assert got == pytest.approx(gap, abs=FCL)
    np.testing.assert_allclose(normal, to_world(UP), atol=1e-4)  # from the channel, B, to the body, A
    assert (on_floor - origin) @ to_world(UP) == pytest.approx(1.0, abs=FCL)
    assert (on_body - origin) @ to_world(UP) == pytest.approx(1.0 + gap, abs=FCL)


def test_a_ball_in_the_hole_of_a_torus_and_inside_its_tube():
    torus = trimesh.creation.torus(1.0, 0.3, major_sections=64, minor_sections=32)
    facets = 6e-3  # the polyhedron lies inside the torus by this much
    gap, *_ = first(*over_static(raw(torus), (Sphere(0.5), (0, 0, 0))))
    assert gap == pytest.approx(1.0 - 0.3 - 0.5, abs=facets)
    # a closed mesh is solid: in the middle of the tube the ball is the tube's radius and its own deep
    gap, normal, *_ = first(*over_static(raw(torus), (Sphere(0.1), (1.0, 0.001, 0.05))))
    assert gap == pytest.approx(-(0.3 - 0.05) - 0.1, abs=facets)
    assert normal[2] < -0.95


def test_tori_linked_and_apart():
    torus = trimesh.creation.torus(1.0, 0.2, major_sections=48, minor_sections=24)
    turned = Rotation.from_euler("x", 90, degrees=True).as_quat(scalar_first=True)
    t = np.linspace(0, 2 * np.pi, 2001)
    one = np.stack([np.cos(t), np.sin(t), 0 * t], 1)
    for x in (1.0, 0.9, 3.0):
        other = np.stack([x + np.cos(t), 0 * t, np.sin(t)], 1)
        want = np.linalg.norm(one[:, None, :] - other[None, ::5, :], axis=-1).min() - 0.4
        gap, *_ = first(*two(raw(torus), raw(torus), (0, 0, 0), (x, 0, 0), quaternion_b=turned))
        assert gap == pytest.approx(want, abs=0.01)  # polyhedra of 48 by 24 faces
        assert gap > 0.3


# -- meshes that are convex after all: the convex answer --------------------------------------------------------------


@pytest.mark.parametrize("other", [Sphere(0.5), Capsule(0.3, 0.5), Box((0.5, 0.4, 0.6)), Cylinder(0.4, 0.5)])
def test_the_mesh_of_a_box_is_the_box(other):
    half = np.array([0.6, 0.5, 0.4])
    mesh, _ = two(raw(trimesh.creation.box(extents=2 * half)), other)
    solid, _ = two(Box(half), other)
    q = random_q(rng, 40, spread=2.0)
    want = np.asarray(detect(solid, q).gap[:, 0])
    near = detect(mesh, q)
    got = np.asarray(near.gap[:, 0])
    apart, shallow = want > 0, (want <= 0) & (want > -0.05)
    assert apart.sum() > 3
    np.testing.assert_allclose(got[apart], want[apart], atol=FCL)
    np.testing.assert_allclose(got[shallow], want[shallow], atol=1e-5)
    # deeper, the way out that was found need not be the shortest one
    assert (got[~apart] <= want[~apart] + 1e-5).all()
    assert (got[~apart] >= 3 * want[~apart] - 0.1).all()


def test_two_meshes_of_boxes_pass_through_each_other():
    half = np.array([0.6, 0.5, 0.4])
    box = raw(trimesh.creation.box(extents=2 * half))
    model, q = two(box, box)
    for gap in (0.3, 1e-5, 0.0, -1e-5, -0.02, -0.2):
        lane = np.asarray(q).copy()
        lane[7:10] = (0.1, 0.2, -0.8 - gap)
        got, normal, *_ = first(model, lane)
        assert got == pytest.approx(gap, abs=FCL)
        np.testing.assert_allclose(normal, UP, atol=1e-4)


def test_gap_is_continuous_through_contact():
    model, q = two(
        raw(trimesh.creation.icosphere(2, radius=0.5)), Cylinder(0.3, 0.4), quaternion_b=(0.3, 0.5, -0.2, 0.7)
    )
    x = np.linspace(1.2, 0.7, 101)
    sweep = np.tile(np.asarray(q), (len(x), 1))
    sweep[:, 7] = x
    gaps = np.asarray(detect(model, sweep).gap[:, 0])
    assert gaps[0] > 0.05
    assert gaps[-1] < -0.05
    near = np.abs(gaps) < 0.03
    assert near.sum() > 5
    assert np.abs(np.diff(gaps[near])).max() <= x[0] - x[1] + 1e-5


def test_sizes_and_distances_of_another_scale():
    for size in (1e-3, 1e3):
        mesh = trimesh.creation.box(extents=(size, size, size))
        gap, *_ = first(*two(raw(mesh), Cylinder(0.4 * size, 0.5 * size), (0, 0, 0), (0.1 * size, 0, 1.3 * size)))
        assert gap == pytest.approx(0.3 * size, abs=FCL * size)


def test_an_open_mesh_is_a_surface_with_two_sides():
    sheet = trimesh.Trimesh([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], [(0, 1, 2), (0, 2, 3)], process=False)
    for z, gap, side in ((0.5, 0.3, -1), (0.15, -0.05, -1), (-0.15, -0.05, 1), (-0.5, 0.3, 1)):
        got, normal, *_ = first(*over_static(raw(sheet), (Sphere(0.2), (0.2, 0.3, z))))
        assert got == pytest.approx(gap, abs=FCL)
        np.testing.assert_allclose(normal, side * UP, atol=1e-6)


def test_mesh_on_a_plane():
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("u", [raw(channel())], mass=1.0, position=(0, 0, 0.01))
    model, state = carom.compile_scene(b.build())
    near = detect(model, state.q, 0.1)
    assert int(near.active.sum()) == 4
    np.testing.assert_allclose(near.gap[:4], 0.01, atol=1e-12)
    corners = {tuple(p) for p in np.asarray(near.point_b[:4, :2]).round(9).tolist()}
    assert corners == {(-2.0, 0.0), (-2.0, 3.0), (2.0, 0.0), (2.0, 3.0)}


# -- heightfields ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", BODIES, ids=lambda s: s.kind)
@pytest.mark.parametrize("gap", [0.3, 1e-6, -1e-6, -0.05, -0.15])
def test_a_body_over_flat_ground(shape, gap):
    model, q = over_static(Heightfield(np.full((5, 7), 0.4), (0.5, 0.7)), (shape, (0.13, -0.21, 0.6 + gap)))
    got, normal, *_ = first(model, q)
    assert got == pytest.approx(gap, abs=FCL)
    np.testing.assert_allclose(normal, -UP, atol=1e-4)


@pytest.mark.parametrize("gap", [0.2, -0.1, -0.3])
def test_a_ball_over_a_slope(gap):
    x = (np.arange(9) - 4) * 0.5
    heights = np.tile(0.5 * x[:, None], (1, 6))
    up = np.array([-0.5, 0, 1]) / np.sqrt(1.25)
    at = np.array([0.2, 0.3, 0.1])
    got, normal, *_ = first(*over_static(Heightfield(heights, 0.5), (Sphere(0.2), at + up * (0.2 + gap))))
    assert got == pytest.approx(gap, abs=FCL)
    np.testing.assert_allclose(normal, -up, atol=1e-6)


def test_ground_is_solid_however_deep():
    model, q = over_static(Heightfield(np.zeros((11, 11)), 1.0), (Sphere(0.2), (0.3, 0.4, -3.0)))
    got, normal, *_ = first(model, q)
    assert got == pytest.approx(-3.2, abs=1e-5)
    np.testing.assert_allclose(normal, -UP, atol=1e-4)


def test_cells_are_cut_from_their_first_corner_to_the_opposite_one():
    # the saddle's middle lies on the diagonal from (0, 0) to (1, 1)
    for heights, middle in (([[1, 0], [0, 1]], 1.0), ([[0, 1], [1, 0]], 0.0)):
        model, q = over_static(Heightfield(heights, 2.0), (Sphere(1e-3), (0.0, 0.0, middle + 0.05)))
        gap, *_ = first(model, q)
        apart = 0.05 if middle == 1.0 else 0.05 / np.sqrt(1.5)  # an edge below; two slopes of 1 in both directions
        assert gap == pytest.approx(apart - 1e-3, abs=1e-3)
