"""A heavy ball on a light one on the ground: what is squeezed stands still, whatever the ratio of the masses."""

import numpy as np
import pytest

import carom

R = 0.028575


def squeezed(ratio):
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5, restitution=0.0)
    for name, mass, height in (("light", 1.0, R), ("heavy", ratio, 3 * R)):
        b.add_body(name, [carom.Sphere(R)], mass=mass, position=(0, 0, height), friction=0.5, restitution=0.0)
    return carom.compile_scene(b.build())


@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e6])
def test_stands_still(ratio):
    model, state = squeezed(ratio)
    run = carom.rollout(model, state, duration=10.0)
    moved = np.abs(np.asarray(run.q) - np.asarray(state.q)).max()
    assert int(run.code) == 0
    assert int(run.events.count) == 0
    assert moved <= 1e-6


@pytest.mark.parametrize("ratio", [1e7, 1e8, 1e9])
def test_nothing_passes(ratio):
    """Forces that differ by their last digit move the light ball: eps ratio g is its acceleration."""
    model, state = squeezed(ratio)
    run = carom.rollout(model, state, duration=2.0, throw=False)
    assert np.abs(np.asarray(run.q)[:, [2, 9]] - [R, 3 * R]).max() <= 1e-6
    assert np.isfinite(np.asarray(run.v)).all()


@pytest.mark.parametrize("ratio", [1e3, 1e6])
def test_a_heavy_ball_that_falls_on_a_light_one_is_stopped(ratio):
    model, state = squeezed(ratio)
    lifted = carom.State(state.q.at[9].add(0.1), state.v, state.t)
    run = carom.rollout(model, lifted, duration=1.0, throw=False)
    light, heavy = np.asarray(run.q)[:, 2], np.asarray(run.q)[:, 9]
    assert light.min() >= R - 1e-5
    assert heavy.min() >= 3 * R - 2e-5
    assert abs(heavy[-1] - 3 * R) <= 1e-5


@pytest.mark.parametrize("ratio", [1e2, 1e5])
def test_a_heavy_box_rides_down_a_slope_on_a_light_one(ratio):
    """The lower one slides, the upper one sticks to it: both move on one parabola."""
    tilt, mu, g = 0.3, 0.2, 9.81
    b = carom.SceneBuilder(gravity=(g * np.sin(tilt), 0, -g * np.cos(tilt)))
    b.add_plane(friction=mu**2, restitution=0.0)  # a pair has the geometric mean
    for k, mass in enumerate((1.0, ratio)):
        b.add_body(f"{k}", [carom.Box((1, 1, 1))], mass=mass, position=(0, 0, 1 + 2 * k), friction=1.0, restitution=0.0)
    model, state = carom.compile_scene(b.build())
    run = carom.rollout(model, state, duration=1.0)
    x = np.asarray(run.q)[:, [0, 7]]
    expected = g * (np.sin(tilt) - mu * np.cos(tilt)) * np.asarray(run.t) ** 2 / 2
    assert int(run.code) == 0
    assert np.abs(x - expected[:, None]).max() <= 1e-9


@pytest.mark.parametrize("ratio", [1e2, 1e6])
def test_a_heavy_box_slides_on_a_light_one_that_slides(ratio):
    """Both interfaces are at the limit of friction. What brakes the light one is the difference of two forces that are
    `ratio` times as large: g mu in all."""
    mu, g, speeds = 0.3, 9.81, np.array([1.0, 3.0])
    b = carom.SceneBuilder(gravity=(0, 0, -g))
    b.add_plane(friction=mu, restitution=0.0)
    for name, mass, size, height in (("light", 1.0, (2, 2, 0.2), 0.2), ("heavy", ratio, (0.2, 0.2, 0.2), 0.6)):
        b.add_body(name, [carom.Box(size)], mass=mass, position=(0, 0, height), friction=mu, restitution=0.0)
    model, state = carom.compile_scene(b.build())
    state = carom.State(state.q, state.v.at[np.array([3, 9])].set(speeds), state.t)
    run = carom.rollout(model, state, duration=0.25, frame_dt=0.05)
    t = np.asarray(run.t)[:, None]
    assert int(run.code) == 0
    assert int(run.events.count) == 0
    assert np.abs(np.asarray(run.v)[:, [3, 9]] - (speeds - mu * g * t)).max() <= 1e-12 * ratio + 1e-9
    assert np.abs(np.asarray(run.q)[:, [0, 7]] - (speeds * t - mu * g * t**2 / 2)).max() <= 1e-12 * ratio + 1e-9
