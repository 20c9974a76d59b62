"""Joints that a script moves: there at the end of the frame, pushing and carrying on the way, and still afterwards."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import carom

RIGID = carom.Motor("velocity", kd=math.inf, effort=1e9)


@pytest.fixture(scope="module")
def made() -> carom.Live:
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_link(
        "platform", joint=carom.Prismatic((1, 0, 0), motor=RIGID), position=(0, 0, 0.1), mass=10.0,
        shapes=[carom.Box((1, 1, 0.05), friction=0.9)],
    )  # fmt: skip
    b.add_link(
        "door", joint=carom.Revolute((0, 0, 1), motor=RIGID), position=(0, 4, 0.6), mass=5.0, com=(0.5, 0, 0),
        shapes=[carom.Box((0.5, 0.05, 0.5), position=(0.5, 0, 0))],
    )  # fmt: skip
    b.add_link(
        "soft", joint=carom.Revolute((0, 0, 1), motor=carom.Motor("velocity", kd=1.0)), position=(0, 8, 1), mass=1.0,
        shapes=[carom.Box((0.5, 0.05, 0.5))],
    )  # fmt: skip
    b.add_link("ball", joint=carom.Spherical(), position=(0, 12, 1), mass=1.0, shapes=[carom.Sphere(0.1)])
    b.add_body("crate", [carom.Box((0.2, 0.2, 0.2), friction=0.9)], mass=3.0, position=(0, 0, 0.35))
    b.add_body("block", [carom.Box((0.2, 0.2, 0.2), friction=0.3)], mass=2.0, position=(0.7, 4.4, 0.2))
    return carom.Live(b, dtype="float64")


@pytest.fixture
def world(made: carom.Live) -> carom.Live:
    made.reset()
    return made


def test_it_is_there_after_each_frame_and_carries(world: carom.Live) -> None:
    for frame in range(60):
        x = 0.5 - 0.5 * math.cos(math.pi * (frame + 1) / 60)
        world.move_joint("platform", x)
        world.step()
        assert world.pose("platform")[0] == pytest.approx(x, abs=1e-7)
    np.testing.assert_allclose(world.pose("crate")[:3], (1, 0, 0.35), atol=1e-4)
    world.step()
    assert world.pose("platform")[0] == pytest.approx(1, abs=1e-7)
    assert np.abs(world.velocity("platform")).max() < 1e-7


def test_it_pushes(world: carom.Live) -> None:
    for frame in range(30):
        world.move_joint("door", (frame + 1) / 30)
        world.step()
    assert world.pose("block")[1] > 4.5


def test_it_pushes_from_wherever_it_strikes(world: carom.Live) -> None:
    """However the motor's effort and impacts follow each other, nothing is left open: there is no code, no warning."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(10):
            world.reset()
            world.teleport("block", (0.7 + rng.uniform(-0.05, 0.05), 4.42 + rng.uniform(-0.05, 0.05), 0.2))
            for frame in range(30):
                world.move_joint("door", (frame + 1) / 30)
                world.step()
                # impacts in a window slow it down for a moment
                assert world.state.q[1] == pytest.approx((frame + 1) / 30, abs=1e-5)
            assert world.pose("block")[1] > 4.5


def test_frames_of_another_length_and_what_is_told_twice(world: carom.Live) -> None:
    world.move_joint("door", -3.0)
    world.move_joint("door", -0.1)
    world.step(0.03)
    assert world.state.q[1] == pytest.approx(-0.1, abs=1e-7)


def test_it_is_an_input_of_one_frame(world: carom.Live) -> None:
    saved = world.save_state()
    world.move_joint("platform", 0.2)
    world.load_state(saved)
    world.step()
    assert world.pose("platform")[0] == 0
    world.motor("platform", 0.5)
    world.move_joint("platform", 0.1)
    world.step()
    world.step()
    assert world.pose("platform")[0] == pytest.approx(0.1, abs=1e-7)  # the command of before is gone


@pytest.mark.parametrize(
    ("link", "q", "said"),
    [
        ("soft", 0.1, "not rigid"),
        ("ball", (1, 0, 0, 0), "is spherical"),
        ("crate", (0,) * 7, "is floating"),
        ("nobody", 0.1, "nobody"),
        ("door", (0.1, 0.2), "q"),
        ("door", math.nan, "finite"),
    ],
)
def test_what_cannot_be_is_refused(world: carom.Live, link: str, q: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        world.move_joint(link, q)  # pyright: ignore[reportArgumentType]
    assert not world._targets
