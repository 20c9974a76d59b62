"""Worlds that let what is slow sleep: who does, who does not, and that frames can be played again."""

import functools
import math
from typing import Any

import numpy as np
import pytest

import carom

SPEED = 0.01  # [m/s]
SLIDES = 0.6 * SPEED
SLOPE = math.radians(1.0)
R = 0.1


@functools.cache
def scene() -> carom.SceneSpec:
    """Without friction: a ball that slides slowly on the floor, one at rest on a slope, one thrown up that slope; and a
    door that swings slowly. A platform stands on the floor."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.0)
    along, up = np.array([math.cos(SLOPE), 0, math.sin(SLOPE)]), np.array([-math.sin(SLOPE), 0, math.cos(SLOPE)])
    turn = (math.cos(SLOPE / 2), 0, -math.sin(SLOPE / 2), 0)
    middle = np.array([0, 5, 2.0])
    b.add_static("slope", [carom.Box((2, 2, 0.5), friction=0.0)], position=tuple(middle), quaternion=turn)
    how: dict[str, Any] = {"shapes": [carom.Sphere(R, friction=0.0)], "mass": 1.0}
    b.add_body("slides", position=(0, 0, R), linear_velocity=(SLIDES, 0, 0), **how)
    b.add_body("starts", position=tuple(middle + (0.5 + R) * up), **how)
    thrown = middle + (0.5 + R) * up + (0, 1, 0)
    b.add_body("thrown", position=tuple(thrown), linear_velocity=tuple(0.02 * along), **how)
    b.add_link(
        "door", joint=carom.Revolute(axis=(0, 0, 1)), position=(0, -5, 1), mass=1.0, com=(0.3, 0, 0),
        inertia=(0.1, 0.1, 0.1), v0=(SLIDES,),
    )  # fmt: skip
    b.add_link(
        "platform", joint=carom.Prismatic((1, 0, 0), motor=carom.Motor("velocity", kd=math.inf, effort=1e5)),
        position=(0, 9, 0.1), mass=1.0, shapes=[carom.Box((0.1, 0.1, 0.1), friction=0.0)],
    )  # fmt: skip
    return b.build()


def world() -> carom.Live:
    return carom.Live(scene(), sleep_speed=SPEED, warm=False, dtype="float64")


def test_what_is_slow_and_touches_something_sleeps() -> None:
    live, frames = world(), 30
    live.motor("platform", SLIDES)
    for _ in range(frames):
        live.step()
    assert live.asleep == ("slides",)
    assert not live.velocity("slides").any()
    assert live.pose("slides")[0] == pytest.approx(SLIDES * live.dt, rel=1e-6)  # it slept after a frame
    # not what starts to move, turns around, or touches nothing
    t, g = frames * live.dt, 9.81 * math.sin(SLOPE)
    along = np.array([math.cos(SLOPE), 0, math.sin(SLOPE)])
    assert live.velocity("starts")[3:] @ along == pytest.approx(-g * t, rel=1e-6)
    assert live.velocity("thrown")[3:] @ along == pytest.approx(0.02 - g * t, rel=1e-6)
    assert live.velocity("door")[2] == pytest.approx(SLIDES, rel=1e-6)
    assert live.pose("platform")[0] == pytest.approx(SLIDES * t, rel=1e-3)  # what a motor moves slowly is not held
    live.motor("platform", 0.0)
    live.apply_impulse("slides", (1.0, 0, 0))
    live.step()
    assert live.asleep == ()
    assert live.velocity("slides")[3] == pytest.approx(1.0, rel=1e-6)


def test_frames_can_be_played_again() -> None:
    live = world()
    for _ in range(3):
        live.step()
    save, hashes = live.save_state(), []
    for _ in range(2):
        live.load_state(save)
        for _ in range(20):
            live.step()
        hashes.append((live.hash(), live.asleep))
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("speed", [-0.01, math.nan, math.inf, "slow"])
def test_a_speed_that_is_none(speed: Any) -> None:
    with pytest.raises(ValueError, match=r"sleep_speed is .* a speed"):
        carom.Live(scene(), sleep_speed=speed, warm=False)
