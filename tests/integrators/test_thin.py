"""Thin bodies: steps do not shrink with them, and nothing passes."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine.results import OK

THIN = 1e-7  # [m]
SIZE = 0.1  # [m] of all bodies here


def disc(quaternion: Any, height: float, **motion: Any) -> Any:
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5, restitution=0.0)
    b.add_body(
        "disc", [carom.Cylinder(SIZE, THIN)], mass=1.0, position=(0, 0, height), quaternion=quaternion,
        friction=0.5, restitution=0.0, **motion,
    )  # fmt: skip
    return carom.compile_scene(b.build())


def about(axis: int, angle: float) -> np.ndarray:
    """A quaternion."""
    q = np.zeros(4)
    q[0], q[1 + axis] = math.cos(angle / 2), math.sin(angle / 2)
    return q


@pytest.mark.parametrize("tilt", [0.0, 1e-6])
def test_a_disc_rolls_on_its_edge_in_the_longest_steps(tilt: float) -> None:
    """At 1 m/s, upright and a little askew: 0.3 s of steps of 1/240 s, in which it goes 0.3 m."""
    model, state = disc(
        about(0, math.pi / 2 + tilt), SIZE, linear_velocity=(1.0, 0, 0), angular_velocity=(0, 1.0 / SIZE, 0)
    )
    run = carom.rollout(model, state, duration=0.3)
    assert int(run.code) == OK
    assert int(run.stats.ticks) - int(run.stats.rollbacks) <= 2 * 0.3 * 240
    np.testing.assert_allclose(run.q[-1, 0], 0.3, atol=1e-5)
    np.testing.assert_allclose(run.q[-1, 2], SIZE, atol=1e-5)


def test_a_disc_goes_round_on_its_edge() -> None:
    """Euler's disc at 0.3 rad, at the rate at which it goes round steadily: Omega^2 = 4 g/(R sin a)."""
    tilt = 0.3
    rate = math.sqrt(4 * 9.81 / (SIZE * math.sin(tilt)))
    w = -rate * math.sin(tilt) * np.array([math.cos(tilt), 0, -math.sin(tilt)])
    model, state = disc(about(1, tilt), SIZE * math.sin(tilt) + THIN, angular_velocity=tuple(w))
    run = carom.rollout(model, state, duration=0.3)
    assert int(run.stats.ticks) < 3000  # 3 million, if a step were as long as it is thin
    np.testing.assert_allclose(run.q[:, 2], SIZE * math.sin(tilt), atol=2e-4)


def test_a_plate_that_falls_any_way_up_lies_in_the_end() -> None:
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5, restitution=0.0)
    b.add_body("plate", [carom.Box((SIZE, 0.8 * SIZE, THIN))], mass=0.3, position=(0, 0, 0.3), friction=0.5)
    model, state = carom.compile_scene(b.build())
    turns = jnp.asarray([about(0, 0.0), about(0, math.pi / 2), about(0, 1.0), about(1, 0.7)])
    states = carom.tile(state, len(turns))
    states = carom.State(states.q.at[:, 3:7].set(turns), states.v.at[:, 1].set(3.0), states.t)
    run = carom.rollout(model, states, duration=1.0, throw=False)
    assert (np.asarray(run.stats.ticks) < 6 * 240).all()
    assert (np.asarray(run.q)[..., 2] > 0).all()
    assert (np.asarray(run.stats.max_penetration) < 2e-5).all()  # as deep as thick ones: the rest's own order in time


KINDS: dict[str, Any] = {
    "plate": lambda thin: carom.Box((SIZE, SIZE, thin)),
    "hull": lambda thin: carom.ConvexHull([(SIZE, 0, thin), (-SIZE, 0, -thin), (0, SIZE, -thin), (0, -SIZE, 0.0)]),
    "disc": lambda thin: carom.Cylinder(SIZE, thin),
    "ball": lambda thin: carom.Sphere(SIZE / 4),
}


def thrown(kinds: tuple[str, str], thin: float, speed: float, spin: float, lanes: int) -> Any:
    """Two bodies that fly at each other, or one at a floor, each lane in its own way."""
    b, rng = carom.SceneBuilder(gravity=(0, 0, 0)), np.random.default_rng(len(kinds[0]) + lanes)
    bodies = [kind for kind in kinds if kind != "floor"]
    if len(bodies) < 2:
        b.add_plane(normal=(0, 0, -1), offset=-SIZE, friction=0.3, restitution=0.5)
    for k, kind in enumerate(bodies):
        b.add_body(f"{k}", [KINDS[kind](thin)], mass=1.0, position=(0, 0, -2 * k), friction=0.3, restitution=0.5)
    model, state = carom.compile_scene(b.build())
    states = carom.tile(state, lanes)
    q, v = np.array(states.q), np.zeros((lanes, 6 * len(bodies)))
    way = rng.normal(size=(lanes, 3)) + np.array([0, 0, 3 * (2 - len(bodies))])
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    fast = speed * rng.uniform(0.2, 1, (lanes, 1))
    for k, side in enumerate((-1, 1)[: len(bodies)]):
        turn = rng.normal(size=(lanes, 4))
        q[:, 7 * k + 3 : 7 * k + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        q[:, 7 * k : 7 * k + 3] = 2 * SIZE * side * way + k * SIZE / 2 * rng.normal(size=(lanes, 3))
        v[:, 6 * k : 6 * k + 6] = np.hstack([spin / 2 * rng.normal(size=(lanes, 3)), -side * fast * way])
    return model, carom.State(jnp.asarray(q), jnp.asarray(v), states.t)


def first_impacts(run: Any) -> np.ndarray:
    """[s], inf where there is none."""
    return np.where(np.asarray(run.events.count) > 0, np.asarray(run.events.t[:, 0]), np.inf)


@pytest.mark.parametrize("thin", [1e-3, 1e-5])
@pytest.mark.parametrize(("speed", "spin"), [(2.0, 40.0), (100.0, 300.0)])
@pytest.mark.parametrize(
    "kinds",
    [
        ("plate", "plate"), ("ball", "plate"), ("floor", "plate"), ("floor", "disc"),
        pytest.param(("hull", "hull"), marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_thin_bodies_strike_when_steps_a_thousandth_as_long_say_so(
    kinds: tuple[str, str], speed: float, spin: float, thin: float
) -> None:
    """Thrown at random: each meeting is seen, and at the very same time."""
    lanes, duration = 64, 4 * SIZE / (0.2 * speed) / 2
    model, states = thrown(kinds, thin, speed, spin, lanes)
    how: dict[str, Any] = {"duration": duration, "frame_dt": duration, "max_events": 8, "throw": False}
    run, fine = (carom.rollout(model, states, max_dt=longest, **how) for longest in (duration, duration / 1000))
    times, expected = first_impacts(run), first_impacts(fine)
    assert np.isfinite(expected).mean() > 0.7
    np.testing.assert_allclose(times, expected, atol=1e-6 * duration)


def test_a_needle_that_tumbles_stays_finite() -> None:
    """Its least moment of inertia is 1.5e-8 of the others; it turns evenly about its momentum."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    b.add_body("needle", [carom.Capsule(1e-5, SIZE)], mass=1.0, angular_velocity=(100.0, 50.0, 90.0))
    model, state = carom.compile_scene(b.build())
    run = carom.rollout(model, state, duration=0.2)
    L = carom.momentum(model, carom.State(run.q, run.v, run.t))
    np.testing.assert_allclose(L.angular[-1], L.angular[0], rtol=1e-6, atol=1e-7)
