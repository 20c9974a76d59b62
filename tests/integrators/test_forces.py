"""Forces from outside, against closed forms: one scene, one lane a law."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.collision.safe_step import longest_step

G, M, MU, HALF = 9.81, 2.0, 0.5, 0.1  # m/s^2, kg, m
T, FRAMES = 0.5, 5
TOLERANCE = {"float64": 1e-9, "float32": 2e-5}  # [m, m/s] ten gap bands, and what single precision adds up to
OFF = np.array([0.02, 0.01, 0.0])  # [m] of the centre of mass from the body's origin

LANES = {  # height of the box's middle [m], force at its centre of mass [N], angular velocity [rad/s]
    "hover": (1.0, (0, 0, M * G), (0, 0, 0)),
    "hover_turning": (1.0, (0, 0, M * G), (0, 0, 3.0)),
    "parabola": (1.0, (3.0, -2.0, M * G + 1.0), (0, 0, 3.0)),
    "held_by_friction": (HALF, (0.9 * MU * M * G, 0, 0), (0, 0, 0)),
    "slides": (HALF, (1.3 * MU * M * G, 0, 0), (0, 0, 0)),
    "pressed": (HALF, (0, 0, -50.0), (0, 0, 0)),
}


def box(dtype: Any) -> tuple[carom.Model, carom.State, jnp.ndarray]:
    """The model, a state for each lane and the force along the degrees of freedom that its force makes at the start."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=MU)
    b.add_body("box", [carom.Box((HALF,) * 3)], mass=M, com=OFF, inertia=(0.02,) * 3, friction=MU, position=(0, 0, 1))
    model, state = carom.compile_scene(b, dtype=dtype)
    heights, pushes, spins = (np.array(x, float) for x in zip(*LANES.values(), strict=True))
    q, v = (np.tile(np.asarray(x), (len(LANES), 1)) for x in (state.q, state.v))
    q[:, 2], v[:, :3] = heights, spins
    v[:, 3:] = -np.cross(spins, OFF)  # the centre of mass at rest
    wrench = np.concatenate([np.cross(OFF, pushes), pushes], 1)
    t = jnp.zeros(len(LANES), state.t.dtype)
    return model, carom.State(jnp.asarray(q, dtype), jnp.asarray(v, dtype), t), jnp.asarray(wrench, dtype)


@pytest.fixture(scope="module", params=["float64", pytest.param("float32", marks=pytest.mark.exhaustive)])
def run(request) -> tuple[float, dict[str, tuple[np.ndarray, ...]]]:
    """The tolerance, and of each lane t, place and velocity of the centre of mass."""
    model, states, wrench = box(request.param)
    forces = jnp.broadcast_to(wrench, (FRAMES, *wrench.shape))
    result = carom.rollout(model, states, duration=T, frame_dt=T / FRAMES, forces=forces, throw=False)
    q, v = np.asarray(result.q, np.float64), np.asarray(result.v, np.float64)
    turned = np.stack([_matrix(x) for x in q[..., 3:].reshape(-1, 4)]).reshape(*q.shape[:2], 3, 3) @ OFF
    places, speeds = q[..., :3] + turned, v[..., 3:] + np.cross(v[..., :3], turned)
    t = np.asarray(result.t, np.float64)
    return TOLERANCE[request.param], {name: (t[i], places[i], speeds[i]) for i, name in enumerate(LANES)}


def _matrix(q: np.ndarray) -> np.ndarray:
    w, u = q[0], q[1:]
    cross = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


@pytest.mark.parametrize("lane", LANES)
def test_a_constant_force_does_what_newton_says(run, lane: str) -> None:
    """Hovering stands still, in the air parabolas are exact, friction holds below its limit and brakes above it."""
    tolerance, lanes = run
    t, place, speed = lanes[lane]
    push = np.array(LANES[lane][1])
    a = {
        "held_by_friction": np.zeros(3),
        "slides": np.array([push[0] / M - MU * G, 0, 0]),
        "pressed": np.zeros(3),
    }.get(lane, push / M - [0, 0, G])
    np.testing.assert_allclose(place - place[0], a * t[:, None] ** 2 / 2, rtol=0, atol=tolerance)
    np.testing.assert_allclose(speed, a * t[:, None], rtol=0, atol=tolerance)


FAR, THRUST = 1.0, 1e5  # [m] to the wall, [N]


def ball_and_wall() -> tuple[carom.Model, carom.State]:
    """A ball of 1 kg that a great force drives at a wall 2 cm thick."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    b.add_body("ball", [carom.Sphere(0.05)], mass=1.0)
    b.add_static("wall", [carom.Box((0.01, 1, 1))], position=(FAR, 0, 0), restitution=0.0)
    return carom.compile_scene(b)


def test_nothing_is_driven_through_a_wall() -> None:
    """Steps stay shorter than what the force could do in them: in 1/60 s it would go 14 m."""
    model, state = ball_and_wall()
    force = jnp.zeros(6).at[3].set(THRUST)
    result = carom.rollout(model, state, duration=0.05, frame_dt=0.05, max_dt=0.05, forces=force, max_contacts=4)
    assert int(result.events.count) >= 1
    assert float(result.q[-1, 0]) <= FAR - 0.01 - 0.05 + 1e-6
    reached = np.sqrt(2 * (FAR - 0.06) / THRUST)
    np.testing.assert_allclose(result.events.t[0], reached, rtol=1e-9)


def test_the_longest_step_knows_forces() -> None:
    """It allows no more travel than gap and inscribed ball, whatever the force's sign; without it there is no end."""
    model, state = ball_and_wall()
    near = carom.detect(model, state.q)
    gap, ball = FAR - 0.06, 0.01
    for sign in (1, -1):
        h = float(longest_step(model, state, near, forces=jnp.zeros(6).at[3].set(sign * THRUST)))
        assert 0.1 * np.sqrt(2 * gap / THRUST) < h <= np.sqrt(2 * (gap + ball) / THRUST) * (1 + 1e-12)
    assert np.isinf(longest_step(model, state, near))


def test_forces_are_numbers_rows_or_a_function() -> None:
    """Of a body that nothing can touch: alike in `step` and in `rollout`, which takes one row a frame."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    b.add_body("stone", mass=M, inertia=(1, 1, 1))
    model, state = carom.compile_scene(b)
    force = jnp.zeros(6).at[3].set(3.0)
    wanted = 3.0 / M * 0.1**2 / 2
    for given in (force, lambda model, state, t: force):
        np.testing.assert_allclose(carom.step(model, state, dt=0.1, forces=given).q[0], wanted, rtol=1e-12)
    rows = jnp.stack([force, -force])
    pushed = carom.rollout(model, state, duration=0.2, frame_dt=0.1, forces=rows)
    np.testing.assert_allclose(pushed.q[:, 0], [0, wanted, 2 * wanted], rtol=1e-12)
    np.testing.assert_allclose(pushed.v[-1], 0, atol=1e-15)
    with pytest.raises(ValueError, match=r"step: forces has shape \(3,\); give \(6,\)"):
        carom.step(model, state, dt=0.1, forces=jnp.zeros(3))
    with pytest.raises(ValueError, match=r"rollout: forces has shape \(7, 6\)"):
        carom.rollout(model, state, duration=0.5, frame_dt=0.1, forces=jnp.zeros((7, 6)))
