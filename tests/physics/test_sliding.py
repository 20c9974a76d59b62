"""Sliding is of order 2 in the step where slip turns, until it stops and after, for one contact and for several."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import carom

MU, G, R = 0.3, 9.81, 0.1
ORDER = 1.8  # at least, of errors at a step and at half of it


def on_a_slope(tilt, *bodies):
    b = carom.SceneBuilder(gravity=(G * math.sin(tilt), 0, -G * math.cos(tilt)))
    b.add_plane(friction=MU, restitution=0.0)
    for k, (shape, height, v, w) in enumerate(bodies):
        b.add_body(
            f"{k}", [shape], mass=1.0, position=(0, 0, height), linear_velocity=v, angular_velocity=w, friction=MU,
            restitution=0.0,
        )  # fmt: skip
    return carom.compile_scene(b.build())


def end(scene, duration, max_dt):
    run = carom.rollout(*scene, duration=duration, frame_dt=duration, max_dt=max_dt, max_ticks=20000)
    assert int(run.events.count) == 0
    return np.concatenate([run.q[-1], run.v[-1]])


def orders(scene, duration, steps, exact):
    errors = [np.abs(end(scene, duration, h) - exact).max() for h in steps]
    return errors, np.log2(np.array(errors[:-1]) / errors[1:])


def test_a_ball_that_slides_askew_down_a_slope():
    """Against the equations of its slip, integrated to 1e-12."""
    tilt, v, w, T = math.radians(20), (1.0, -2.0, 0.0), (5.0, -8.0, 3.0), 0.25
    g = G * np.array([math.sin(tilt), 0, -math.cos(tilt)])
    arm = np.array([0, 0, -R])

    def rates(_, y):
        u = (y[3:6] + np.cross(y[6:], arm))[:2]
        force = np.append(-MU * -g[2] * u / np.linalg.norm(u), 0)
        return np.concatenate([y[3:6], [*(g + force)[:2], 0], np.cross(arm, force) / (0.4 * R * R)])

    y = solve_ivp(rates, (0, T), [0, 0, R, *v, *w], rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]
    scene = on_a_slope(tilt, (carom.Sphere(R), R, v, w))
    errors = []
    for h in (1 / 120, 1 / 240, 1 / 480):
        x = end(scene, T, h)
        errors.append(np.abs(np.concatenate([x[:3], x[10:], x[7:10]]) - y).max())
    assert errors[1] < 2e-4  # of 34 rad/s; 1.5e-2 with friction against the slip of the end
    assert (np.log2(np.array(errors[:-1]) / errors[1:]) > ORDER).all(), errors


@pytest.mark.slow
@pytest.mark.parametrize("duration", [0.2, 1.0])
def test_a_box_that_spins_as_it_slides(duration):
    """Four corners share its load in one way; at 1 s it has come to rest on a slope that holds it."""
    scene = on_a_slope(0.25, (carom.Box((0.2, 0.1, 0.05)), 0.05, (1, -2, 0), (0, 0, 6)))
    errors, order = orders(scene, duration, (1 / 120, 1 / 240, 1 / 480), end(scene, duration, 1 / 3840))
    assert errors[1] < 1e-3
    assert (order > ORDER).all(), errors


@pytest.mark.slow
def test_a_box_that_slides_on_a_sliding_box():
    upper = (carom.Box((0.1, 0.1, 0.05)), 0.15, (0, -1, 0), (0, 0, -2))
    scene = on_a_slope(0.35, (carom.Box((0.2, 0.2, 0.05)), 0.05, (1, -1, 0), (0, 0, 2)), upper)
    errors, order = orders(scene, 0.15, (1 / 120, 1 / 240, 1 / 480), end(scene, 0.15, 1 / 3840))
    assert errors[1] < 1e-3
    assert (order > ORDER).all(), errors


@pytest.mark.parametrize(("dtype", "off"), [("float64", 4e-6), ("float32", 3e-3)])
@pytest.mark.parametrize("max_dt", [1 / 60, 1 / 240, 1 / 960])
def test_a_box_shoved_up_a_slope_that_cannot_hold_it(max_dt, dtype, off):
    """It turns back wherever in a step its speed ends: two parabolas, on slopes that all differ."""
    count, T, rng = 64, 1.0, np.random.default_rng(4)
    tilt, speed = rng.uniform(0.2, 0.8, count), rng.uniform(0.5, 5, count)
    mu = rng.uniform(0.05, 0.95, count) * np.tan(tilt)
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("box", [carom.Box((0.1, 0.1, 0.02))], mass=1.0, position=(0, 0, 0.02))
    model, state = carom.compile_scene(b.build(), dtype=dtype)
    gravity = G * np.stack([np.sin(tilt), 0 * tilt, -np.cos(tilt)], 1)
    model = model.replace(pair_friction=mu[:, None].astype(dtype), gravity=gravity.astype(dtype))
    v = np.zeros((count, 6), dtype)
    v[:, 3] = -speed
    start = carom.State(jnp.tile(state.q, (count, 1)), jnp.asarray(v), jnp.zeros(count, dtype))
    run = carom.rollout(model, start, duration=T, frame_dt=T, max_dt=max_dt)
    up, down = (G * (np.sin(tilt) + s * mu * np.cos(tilt)) for s in (1, -1))
    turn = speed / up
    exact = np.where(
        turn > T, -speed * T + 0.5 * up * T**2, -0.5 * speed**2 / up + 0.5 * down * np.maximum(T - turn, 0) ** 2
    )
    assert (run.code == 0).all()
    assert np.abs(np.asarray(run.q)[:, -1, 0] - exact).max() < off
