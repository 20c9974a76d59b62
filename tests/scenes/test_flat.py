"""Bodies that stay in a plane: as free ones that nothing takes out of it, on three degrees of freedom."""

from __future__ import annotations

import numpy as np
import pytest

import carom
from carom.collision.poses import quaternion_product, rotation_matrix
from carom.engine.dynamics.kinematics import fk
from carom.scenes.compiling.flat import PLANES
from carom.scenes.formats.toml_writing import to_toml

CENTRED = carom.Capsule(radius=0.1, half_length=0.2)


def turn(axis: int, angle: float) -> np.ndarray:
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * np.eye(3)[axis]])


def pair(plane: str, seed: int) -> tuple[carom.SceneBuilder, carom.SceneBuilder]:
    """The same bodies, flying in a plane, on planar joints and free."""
    random = np.random.default_rng(seed)
    x, y = PLANES[plane]
    n = np.cross(x, y)
    flat, free = (carom.SceneBuilder(gravity=-9.81 * y, plane=p) for p in (plane, None))
    for k in range(2):
        angle, swing = random.uniform(-3, 3), turn(int(np.argmax(np.abs(x))), random.uniform(-1, 1))
        about = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * n])
        body = {
            "position": random.normal(size=3), "quaternion": quaternion_product(about, swing),
            "mass": random.uniform(1, 2), "inertia": (0.1, 0.1, 0.1),  # a ball's: no turn wobbles
            "com": rotation_matrix(swing).T @ (0.1 * x), "angular_velocity": n * random.normal(),
            "linear_velocity": x * random.normal() + y * random.normal(),
        }  # fmt: skip
        for b in (flat, free):
            b.add_body(f"body{k}", **body)
    return flat, free


@pytest.mark.parametrize("plane", PLANES)
def test_they_fly_as_free_ones_do(plane: str) -> None:
    there = []
    for b, nv in zip(pair(plane, 3), (6, 12), strict=True):
        model, state = carom.compile_scene(b, dtype=np.float64)
        assert model.topology.nv == nv
        ran = carom.rollout(model, state, duration=0.7, frame_dt=0.7, max_dt=0.01)
        poses = fk(model, ran.q)
        there.append((np.asarray(poses.position), np.asarray(poses.rotation)))
    for flat, free in zip(*there, strict=True):
        np.testing.assert_allclose(flat[0], free[0], atol=1e-12)
        np.testing.assert_allclose(flat[-1], free[-1], atol=1e-7)  # free ones turn step by step


def test_their_coordinates_are_the_worlds() -> None:
    b = carom.SceneBuilder(plane="xz")
    b.add_body("box", [carom.Box((0.1, 0.1, 0.1))], position=(1, 2, 3), quaternion=turn(1, -0.4), mass=1.0)
    b.add_body("ball", [carom.Sphere(0.1)], position=(1, 5, 3), mass=1.0, linear_velocity=(2, 0, 1))
    _, state = carom.compile_scene(b, dtype=np.float64)
    np.testing.assert_allclose(state.q, (0.4, 1, 3, 0, 1, 3), atol=1e-12)  # from x towards z
    np.testing.assert_allclose(state.v, (0, 0, 0, 0, 2, 1), atol=1e-12)


def test_a_box_slides_stops_and_stands() -> None:
    b = carom.SceneBuilder(plane="xz")
    b.add_plane(friction=0.3)
    b.add_body("box", [carom.Box((0.2, 0.2, 0.2), friction=0.3)], position=(0, 0, 0.2), linear_velocity=(1, 0, 0))
    model, state = carom.compile_scene(b, dtype=np.float64)
    end = carom.rollout(model, state, duration=1.0, frame_dt=1.0, max_dt=1 / 240)
    np.testing.assert_allclose(end.q[-1], (0, 1 / (2 * 0.3 * 9.81), 0.2), atol=1e-6)
    np.testing.assert_allclose(end.v[-1], 0, atol=1e-12)


def test_a_file_keeps_the_plane(tmp_path) -> None:
    b = carom.SceneBuilder(plane="yz")
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(1, 2, 3))
    b.add_body("other", [carom.Sphere(0.1)], mass=1.0, position=(1, 4, 3), plane="xy")
    (tmp_path / "flat.toml").write_text(to_toml(b.build()))
    assert carom.load(tmp_path / "flat.toml") == b.build()
    planes = [body.plane for body in b.build().links if isinstance(body, carom.BodySpec)]
    assert planes == ["yz", "xy"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"plane": "zx"}, "plane is 'zx'; it must be one of xy, xz, yz"),
        ({"linear_velocity": (0, 1, 0)}, "does not leave it"),
        ({"angular_velocity": (0, 0, 1)}, "turns about its normal alone"),
    ],
)
def test_what_cannot_be_in_a_plane_is_refused(given: dict, said: str) -> None:
    b = carom.SceneBuilder(plane="xz")
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, **given)
    with pytest.raises(carom.SceneError, match=said):
        carom.compile_scene(b)


@pytest.fixture(scope="module")
def world() -> carom.Live:
    b = carom.SceneBuilder(plane="xz")
    b.add_plane()
    b.add_body("pill", [CENTRED], mass=1.0, position=(0, 1, 0.4))
    lying = quaternion_product(turn(1, 0.5), turn(0, np.pi / 2))
    b.add_body("log", [CENTRED], mass=1.0, position=(3, 0, 1), quaternion=lying)
    return carom.Live(b, pool={"pill": 2, "log": 1}, dtype="float64")


def test_worlds_add_and_move_them(world: carom.Live) -> None:
    world.reset()
    pill = world.add_body("pill", (1, 1, 2), linear_velocity=(0.5, 0, 0), angular_velocity=(0, 2, 0))
    log = world.add_body("log", (-2, 0, 2))
    np.testing.assert_allclose(world.pose(log)[3:], world._parts.start.link_states.pose[1, 3:], atol=1e-12)
    np.testing.assert_allclose(world.velocity(pill), (0, 2, 0, 0.5, 0, 0), atol=1e-12)
    for _ in range(10):
        world.step()
    np.testing.assert_allclose(world.pose(pill)[:3], (1 + 0.5 / 6, 1, 2 - 9.81 / 72), atol=1e-9)
    world.teleport(pill, (2, 1, 3), turn(1, 0.7))
    np.testing.assert_allclose(world.pose(pill), (2, 1, 3, *turn(1, 0.7)), atol=1e-12)
    for _ in range(240):
        world.step()
        assert world.pose(pill)[1] == 1
    world.remove_body(pill)
    saved = world.save_state()
    world.step()
    then = world.hash()
    world.load_state(saved)
    world.step()
    assert world.hash() == then
    assert pill not in world.bodies


@pytest.mark.parametrize(
    "given", [{"position": (0, 1.1, 2)}, {"quaternion": turn(0, 0.1)}, {"linear_velocity": (0, 1, 0)},
              {"angular_velocity": (1, 0, 0)}],
)  # fmt: skip
def test_worlds_refuse_what_leaves_the_plane(world: carom.Live, given: dict) -> None:
    world.reset()
    before = world.hash()
    with pytest.raises(ValueError, match="stays in its plane"):
        world.teleport("pill", **given)
    assert world.hash() == before
