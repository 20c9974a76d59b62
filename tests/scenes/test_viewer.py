"""The viewer: what a viser server holds of a recording, and of a world that runs."""

import socket
import time
from typing import Any

import numpy as np
import pytest

from carom import SceneBuilder, Sphere
from carom.scenes.show.colours import IVORY
from carom.scenes.show.meshes import ball
from carom.scenes.show.motion import model_of, motion_of
from carom.scenes.view.nodes import faces_by_colour, link_path
from carom.scenes.view.recording import between, frame_at
from carom.tests.scenes.drawn import recording

pytest.importorskip("viser", reason="viser is not installed")

from carom.scenes.view.viewer import view


@pytest.fixture(scope="module")
def viewer():
    viewer = view(recording(lanes=2), port=0, open_browser=False, block=False)
    yield viewer
    viewer.close()


def shown(viewer, t: float):
    """Once the viewer's thread has shown the time t."""
    end = time.monotonic() + 60
    while viewer.show.shown is None or viewer.show.shown[0] != pytest.approx(t):
        assert time.monotonic() < end, viewer.trouble
        time.sleep(0.01)


def test_links_are_where_the_frame_has_them(viewer):
    nodes, q = viewer.show.nodes, recording().q
    for k in (3, 20):
        viewer.show.seek(float(recording().t[k]))
        shown(viewer, recording().t[k])
        np.testing.assert_allclose(nodes.links[0].position, q[k, :3], atol=1e-6)
        assert abs(np.dot(nodes.links[0].wxyz, q[k, 3:7])) == pytest.approx(1)
    viewer.show.step(1)
    shown(viewer, recording().t[21])


def test_arrows_are_there_at_an_impact(viewer):
    viewer.show.seek(0.1)
    shown(viewer, 0.1)
    viewer.show.next_impact()
    shown(viewer, 0.2)
    handle = viewer.show.nodes.arrow_handle
    np.testing.assert_allclose(handle.points[0, 0], (0.2, 0, 0), atol=1e-6)
    assert handle.points[0, 1, 2] > 0
    assert handle.visible
    viewer.show.seek(0.45)
    shown(viewer, 0.45)
    assert not handle.visible


def test_another_lane_and_the_wireframe(viewer):
    viewer.show.lane.value, viewer.show.wire.value = "1", True
    viewer.show.seek(0.3)
    shown(viewer, 0.3)
    assert viewer.show.nodes.links[0].position[1] == pytest.approx(1.0)
    assert all(handle.visible for _, handle in viewer.show.nodes.wire)
    viewer.show.lane.value, viewer.show.wire.value = "0", False


def test_trails_of_all_and_of_none(viewer):
    viewer.show.trails.value = "all"
    viewer.show.seek(0.4)
    shown(viewer, 0.4)
    handle = viewer.show.nodes.trail_handle
    np.testing.assert_allclose(handle.points[0, 0], (0, 0, 0.5), atol=1e-6)
    viewer.show.trails.value = "off"
    viewer.show.seek(0.41)
    shown(viewer, 0.41)
    assert not handle.visible


def test_playing_goes_on_and_round(viewer):
    viewer.show.seek(0.48)
    shown(viewer, 0.48)
    viewer.show.toggle()
    end = time.monotonic() + 60
    while viewer.show.t >= 0.48 and time.monotonic() < end:
        time.sleep(0.01)
    assert viewer.show.t < 0.48
    viewer.show.toggle()


def test_a_port_in_use_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            ValueError, match=rf"port is {port} on 127\.0\.0\.1: .*give another, e\.g\. port={port + 1}"
        ):
            view(recording(), port=port, open_browser=False, block=False)


def test_frames_and_what_is_between_them():
    t = np.array([0.0, 0.1, 0.3])
    assert frame_at(t, 0.2) == (1, pytest.approx(0.5))
    assert frame_at(t, -1.0)[0] == 0
    assert frame_at(t[:1], 5.0) == (0, 0.0)
    run = recording()
    motion = motion_of(run, model_of(run), [0])
    position, quaternion = between(motion, 6, 0.25)
    np.testing.assert_allclose(position[0], (run.t[6] + 0.25 / 60, 0, 0.5), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(quaternion, axis=-1), 1, atol=1e-12)


def test_patterns_take_every_face_once():
    mesh = ball(Sphere(1.0).radius)
    for pattern in ("plain", "quarters", "solid", "stripe", "cue"):
        parts = faces_by_colour(mesh, pattern, (0.2, 0.4, 0.6))
        assert sum(len(faces) for faces, _ in parts) == len(mesh.faces)
        assert all(len(faces) for faces, _ in parts)
    assert faces_by_colour(mesh, "stripe", (0.2, 0.4, 0.6))[1][1] == IVORY


@pytest.mark.slow
def test_a_scene_runs_until_it_is_paused():
    viewer: Any = view("bouncing_ball", port=0, open_browser=False, block=False)
    try:
        world = viewer.show.world
        end = time.monotonic() + 120
        while world.time < 0.6 and time.monotonic() < end:  # the ball lands at 0.45 s
            time.sleep(0.02)
        assert world.time >= 0.6
        assert viewer.show.strongest > 1.0
        viewer.show.step()
        time.sleep(0.5)
        stood = world.time
        np.testing.assert_allclose(viewer.show.nodes.links[0].position, world.poses()[0, :3], atol=1e-6)
        time.sleep(0.3)
        assert world.time == stood
        for colour in ("body", "island"):
            viewer.show.debug.value = colour
            viewer.show.step()
            time.sleep(0.5)
            lines, drawn = world.debug_lines(colour=colour), viewer.show.nodes.debug_handle
            assert drawn.visible
            np.testing.assert_allclose(drawn.points, lines.ends, atol=1e-6)
        viewer.show.debug.value = "off"
        viewer.show.restart()
        time.sleep(0.3)
        assert world.time == 0
        assert not viewer.show.nodes.debug_handle.visible
    finally:
        viewer.close()
    assert viewer.trouble is None


def test_a_slash_in_a_name_hangs_no_link_on_another():
    """As MJCF's `body/joint`: a frame under another one's path would move with it."""
    builder = SceneBuilder()
    for k, name in enumerate(("arm", "arm/hinge", "arm%2Fhinge", "arm/shape0")):
        builder.add_body(name, [Sphere(0.1)], position=(k, 0, 0))
    viewer: Any = view(builder, port=0, open_browser=False, block=False)
    try:
        paths = [handle.name for handle in viewer.show.nodes.links]
        assert [path.count("/") for path in paths] == [2] * 4
        assert len(set(paths)) == 4
        assert {handle.name.rpartition("/shape")[0] for _, handle in viewer.show.nodes.solid} == set(paths)
    finally:
        viewer.close()
    assert link_path("arm") == "/links/arm"
