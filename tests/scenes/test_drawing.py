"""What is drawn of a scene: meshes of the right size and the right way out, in the right place and colour."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import carom
from carom import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, Heightfield, Mesh, SceneBuilder, Sphere
from carom.contact.contacts import tangents
from carom.engine.algebra.vec3 import Vec3
from carom.scenes.library.billiards import LENGTH, WIDTH
from carom.scenes.show.drawing import drawing_of, quaternions
from carom.scenes.show.motion import contact_frames, extent, hits_of, model_of, motion_of, turns_between
from carom.scenes.show.planes import clip_polygon, patches, with_patches
from carom.tests.scenes.drawn import FRAME_DT, SPIN, recording

ROUND = 0.02  # of the volume: what 48 sides leave out of a round body (0.3 % of a circle, three times over and more)
WEDGE = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (0, 1, 1))
CORNERS = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
TETRAHEDRON = (CORNERS, ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)))

SOLIDS = {
    "sphere": (Sphere(0.3), 4 / 3 * np.pi * 0.3**3),
    "box": (Box((0.1, 0.2, 0.3)), 8 * 0.1 * 0.2 * 0.3),
    "capsule": (Capsule(0.2, 0.5), 4 / 3 * np.pi * 0.2**3 + np.pi * 0.2**2),
    "cylinder": (Cylinder(0.2, 0.5), np.pi * 0.2**2),
    "ellipsoid": (Ellipsoid((0.1, 0.2, 0.3)), 4 / 3 * np.pi * 0.1 * 0.2 * 0.3),
    "hull": (ConvexHull(WEDGE), 0.5),
    "mesh": (Mesh(TETRAHEDRON, convex="hull"), 1 / 6),
}


def drawn(*shapes, **more):
    b = SceneBuilder()
    b.add_body("body", list(shapes), **more)
    scene = b.build()
    return drawing_of(scene, carom.compile_scene(scene)[0])


@pytest.mark.parametrize("kind", SOLIDS)
def test_meshes_have_the_volume_of_their_shapes_and_normals_outwards(kind):
    shape, volume = SOLIDS[kind]
    drawing = drawn(shape)
    mesh = next(drawing.meshes[s.mesh] for s in drawing.shapes if s.solid)
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
    cross = np.cross(b - a, c - a)
    assert np.einsum("ij,ij->", a, np.cross(b, c)) / 6 == pytest.approx(volume, rel=ROUND)
    np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-12)
    whole = np.linalg.norm(cross, axis=1) > 1e-12  # at the poles triangles have no area
    along = np.einsum("fk,fvk->fv", cross, mesh.normals[mesh.faces])[whole]
    assert (along > 0).all()


def test_a_mesh_is_drawn_itself_and_what_collides_as_wireframe():
    drawing = drawn(Mesh(TETRAHEDRON, convex="hull"))
    assert [(s.solid, s.wire) for s in drawing.shapes] == [(False, True), (True, False)]


def test_a_heightfield_has_its_heights():
    b = SceneBuilder()
    b.add_static("hills", [Heightfield([[0, 1, 2], [3, 4, 5]], (0.5, 2.0))])
    b.add_body("ball", [Sphere(0.1)], position=(0, 0, 9))
    scene = b.build()
    drawing = drawing_of(scene, carom.compile_scene(scene)[0])
    mesh = drawing.meshes[drawing.shapes[0].mesh]
    assert set(map(tuple, mesh.vertices)) == {
        (x, y, 3.0 * i + j) for i, x in enumerate((-0.25, 0.25)) for j, y in enumerate((-2.0, 0.0, 2.0))
    }
    assert drawing.owners == ("hills", "ball")


def test_a_link_without_shapes_is_the_box_that_has_its_inertia():
    half, mass = np.array([0.1, 0.2, 0.3]), 3.0
    inertia = mass / 3 * ((half**2).sum() - half**2)
    turn = Rotation.from_euler("xyz", (0.3, -0.5, 0.8)).as_matrix()
    full = turn @ np.diag(inertia) @ turn.T
    drawing = drawn(mass=mass, com=(0.0, 0.0, 0.0), inertia=tuple(map(tuple, full)))
    (shape,) = drawing.shapes
    corners = drawing.meshes[shape.mesh].vertices
    w, *xyz = shape.quaternion
    placed = Rotation.from_quat([*xyz, w]).apply(corners) @ turn  # in the box's own axes
    np.testing.assert_allclose(np.abs(placed), np.broadcast_to(half, placed.shape), atol=1e-9)


def test_a_parameter_that_varies_draws_every_lane_its_own_shape():
    b = SceneBuilder()
    b.add_body("ball", [Sphere(0.1)])
    scene = b.build()
    model, _ = carom.compile_scene(scene)
    sizes = np.array([[[0.1, 0, 0]], [[0.3, 0, 0]], [[0.2, 0, 0]]])
    drawing = drawing_of(scene, model.replace(shape_size=sizes), lanes=(0, 2))
    reach = {s.lane: np.abs(drawing.meshes[s.mesh].vertices).max() for s in drawing.shapes}
    assert reach == {0: pytest.approx(0.1), 2: pytest.approx(0.2)}


def test_pool_balls_have_their_colours():
    scene = carom.load("pool_break")
    drawing = drawing_of(scene, carom.compile_scene(scene)[0])
    look = {drawing.names[s.link]: (s.colour, s.pattern) for s in drawing.shapes}
    assert look["cue"][1] == "cue"
    assert look["ball8"][1] == "solid"
    assert max(look["ball8"][0]) < 0.2
    assert look["ball9"] == (look["ball1"][0], "stripe")


def test_cushions_cut_the_cloth_off():
    scene = carom.load("pool_break")
    drawing = drawing_of(scene, carom.compile_scene(scene)[0])
    low, high = np.array([-1, -0.5, 0]), np.array([1, 0.5, 0.06])
    ground = patches(drawing.planes, low, high)
    assert not any(patch.endless for patch in ground)
    np.testing.assert_allclose(np.ptp(ground[0].corners, axis=0), (LENGTH, WIDTH, 0), atol=1e-12)
    for patch in ground[1:]:
        assert patch.corners[:, 2].max() == pytest.approx(0.06)
    np.testing.assert_allclose(with_patches(ground, low, high)[1], (LENGTH / 2, WIDTH / 2, 0.06))


def test_a_polygon_is_cut_by_a_plane():
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
    kept = clip_polygon(square, np.array([1.0, 0, 0]), 0.25)
    assert kept[:, 0].min() == 0.25
    assert len(clip_polygon(square, np.array([1.0, 0, 0]), 2.0)) == 0


def test_quaternions_are_those_of_their_matrices():
    rng = np.random.default_rng(0)
    halves = np.pi * np.concatenate([np.eye(3), -np.eye(3) * (1 - 1e-9)])
    turns = Rotation.from_rotvec(np.concatenate([rng.normal(size=(200, 3)) * 2, halves, np.zeros((1, 3))]))
    w, *xyz = np.moveaxis(quaternions(turns.as_matrix()), -1, 0)
    again = Rotation.from_quat(np.stack([*xyz, w], axis=-1))
    np.testing.assert_allclose((turns * again.inv()).magnitude(), 0, atol=1e-7)


def test_contact_frames_are_those_of_the_impacts():
    n = np.random.default_rng(1).normal(size=(50, 3))
    n = np.concatenate([n / np.linalg.norm(n, axis=1, keepdims=True), np.eye(3), -np.eye(3)])
    rows = tangents(Vec3.of(n)).rows
    wanted = np.stack([np.stack([np.broadcast_to(c, len(n)) for c in row.xyz], -1) for row in rows], -2)
    np.testing.assert_allclose(contact_frames(n), wanted, atol=1e-15)
    assert not contact_frames(np.zeros(3)).any()


def test_an_impulse_is_shown_on_the_body_that_moves():
    hits = hits_of(recording())
    np.testing.assert_allclose(hits.impulse[0, 2], 3.0)  # down on the ground, so up on the ball
    assert hits.bodies.tolist() == [[0, -1]]
    assert hits.size == pytest.approx([np.hypot(0.3, 3.0)])
    assert hits.loss == [1.0]


def test_poses_and_spin_of_a_recording():
    run = recording()
    model = model_of(run)
    motion = motion_of(run, model, [0])
    np.testing.assert_allclose(motion.position[0, :, 0], run.q[:, :3], atol=1e-12)
    alike = np.abs((motion.quaternion[0, :, 0] * run.q[:, 3:7]).sum(-1))
    np.testing.assert_allclose(alike, 1, atol=1e-12)
    kinetic = 0.5 * 2 * 1.0**2 + 0.5 * (0.4 * 2 * 0.1**2) * SPIN**2 + 0.5 * (0.1 + 0.3**2) * run.v[:, 6] ** 2
    np.testing.assert_allclose(motion.kinetic[0], kinetic, rtol=1e-12)
    # the shortest way between frames is not how the ball went; with the turns it is
    total = SPIN * FRAME_DT
    shortest = (total + np.pi) % (2 * np.pi) - np.pi
    turns = turns_between(motion)[0, :, 0]
    np.testing.assert_allclose(np.sign(shortest) * shortest + 2 * np.pi * turns, np.sign(shortest) * total, atol=1e-9)


def test_lanes_have_the_parameters_that_they_were_run_with():
    run = replace(recording(lanes=3), varied={"mass": np.array([[2.0, 1.0], [4.0, 1.0], [6.0, 1.0]])})
    motion = motion_of(run, model_of(run), [0, 2])
    heights = run.q[0, :, 2]
    extra = 0.5 * 4 * 1.0**2 + 4 * 9.81 * heights  # 4 kg more: of the ball's inertia they say nothing
    np.testing.assert_allclose((motion.kinetic + motion.potential)[1] - (motion.kinetic + motion.potential)[0], extra)


def test_frames_that_a_lane_did_not_reach_stand_still():
    run = recording(lanes=2)
    q, v = run.q.copy(), run.v.copy()
    q[1, 10:], v[1, 10:] = np.nan, np.nan
    motion = motion_of(replace(run, q=q, v=v), model_of(run), [0, 1], every=2)
    assert motion.reached.tolist() == [16, 5]
    assert np.isfinite(motion.position).all()
    np.testing.assert_array_equal(motion.position[1, 5:], np.broadcast_to(motion.position[1, 5], (11, 2, 3)))


def test_the_picture_holds_what_moves_and_not_what_flies_away():
    run = recording()
    drawing = drawing_of(run.scene, model_of(run))
    motion = motion_of(run, model_of(run), [0])
    position, quaternion = (np.tile(x, (1, 10, 1, 1)) for x in (motion.position, motion.quaternion))
    low, high = extent(drawing, position, quaternion)
    arm = 0.5 * np.sin(1.0) + 0.05  # the capsule's end, from the joint, at the end of the run
    assert -arm - 0.1 < low[0] < -arm + 0.05
    assert 0.5 < high[0] < 0.5 + 0.1 * np.sqrt(3)  # the ball at the end, in a box that turns with it
    assert low[2] < 0.4 < 1.0 <= high[2] + 0.1
    position[0, -2:, 0] = 1e4
    np.testing.assert_allclose(extent(drawing, position, quaternion), (low, high), atol=0.05)
