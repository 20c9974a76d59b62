"""Derivatives of whole runs, through impacts, slides and rests: closed forms, and central differences of the runs.

A run finds touches within its gap band, so that differences of runs are off by the band over the length of a step
(1e-9 m, 4 mm: 2.5e-7), while derivatives are not: where the two are compared the band is narrower.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.engine import results

pytestmark = pytest.mark.slow  # derivatives of a whole step compile for half a minute and more

G, RADIUS = 9.81, 0.1
NARROW = 1e-12  # m: differences of runs are off by 1e-9 then
RUN: dict[str, Any] = {"max_events": 8, "max_impacts": 8, "throw": False}


def differences(f: Any, x: jax.Array, step: float) -> np.ndarray:
    """Central, a column for each number in x."""
    f = jax.jit(f)
    return np.stack([(f(x + d) - f(x - d)) / (2 * step) for d in jnp.eye(len(x)) * step], -1)


# -- a ball bounces three times ---------------------------------------------------------------------------

END, START = 2.0, np.array([1.0, 0.3, 0.8])  # s; height of its fall [m], speed upwards [m/s], restitution


def bounced(x: jax.Array) -> jax.Array:
    """Its height at END, after the third bounce: each returns e times the speed, and lasts that much less."""
    h, v, e = x
    u = jnp.sqrt(v * v + 2 * G * h)
    since = END - (v + u) / G - 2 * (e + e * e) * u / G
    return RADIUS + e**3 * u * since - G * since * since / 2


@functools.cache
def ball(dtype: Any) -> Any:
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=0.0, restitution=0.8)
    b.add_body("ball", shapes=[carom.Sphere(RADIUS)], mass=1.0, position=(0, 0, 1), friction=0.0, restitution=0.8)
    return carom.compile_scene(b, dtype=dtype)


def fallen(x: jax.Array, **how: Any) -> Any:
    model, state = ball(x.dtype.name)
    state = carom.State(state.q.at[2].set(x[0] + RADIUS), state.v.at[5].set(x[1]), state.t)
    model = model.replace(pair_restitution=jnp.full_like(model.pair_restitution, x[2]))
    run = carom.rollout(model, state, duration=END, frame_dt=END, max_dt=0.1, max_contacts=1, **RUN, **how)
    return run.state.q[2], (run.code, run.stats.impacts, run.stats.ticks)


@pytest.mark.parametrize(
    ("mode", "dtype", "tolerance"),
    [("forward", "float64", 1e-9), ("reverse", "float64", 1e-9), ("forward", "float32", 2e-4)],  # f32: 1e-5 m of gap
)
def test_of_a_ball_after_three_bounces(mode: str, dtype: str, tolerance: float) -> None:
    """By the height, the speed and e: what the formula says."""
    ball(dtype)  # not inside jit
    x = jnp.asarray(START, dtype)
    turn = jax.jacfwd if mode == "forward" else jax.grad
    how: dict[str, Any] = {} if mode == "forward" else {"reverse": True, "max_ticks": 64}
    slope, (code, impacts, ticks) = jax.jit(turn(functools.partial(fallen, **how), has_aux=True))(x)
    assert (int(code), int(impacts)) == (results.OK, 3)
    assert int(ticks) <= 64
    np.testing.assert_allclose(slope, jax.grad(bounced)(jnp.asarray(START)), rtol=tolerance, atol=tolerance)


# -- against differences --------------------------------------------------------------------------------------


def pendulum() -> Any:
    """A rod that strikes its stop twice: by its angle and speed, mass, centre of mass, restitution and the stop."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    joint = carom.Revolute((0, 1, 0), limits=(-0.4, 2.0), restitution=0.7, damping=0.05)
    b.add_link("rod", joint=joint, position=(0, 0, 1), mass=1.3, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01), q0=0.9)
    model, state = carom.compile_scene(b)

    def given(x: jax.Array) -> Any:
        changed = model.replace(
            mass=x[2:3], com=model.com.at[0, 2].set(x[3]), limit_restitution=x[4:5], lower=x[5:6]
        )  # fmt: skip
        return changed, carom.State(x[:1], x[1:2], state.t)

    return given, [0.9, 0.1, 1.3, -0.5, 0.7, -0.4], 2.0, 2


def hammer() -> Any:
    """A ball on a rod that strikes a wall: by its angle and speed, mass, the rod's length and the ball's radius."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(normal=(1, 0, 0), offset=-0.3, friction=0.3, restitution=0.6)
    b.add_link(
        "rod", joint=carom.Revolute((0, 1, 0)), position=(0, 0, 1), mass=1.3, com=(0, 0, -0.5), q0=-0.6,
        inertia=(0.1, 0.1, 0.01), shapes=[carom.Sphere(0.1, position=(0, 0, -0.8))], friction=0.3, restitution=0.6,
    )  # fmt: skip
    model, state = carom.compile_scene(b)

    def given(x: jax.Array) -> Any:
        changed = model.replace(
            mass=x[2:3], shape_position=model.shape_position.at[1, 2].set(x[3]),
            shape_size=model.shape_size.at[1, 0].set(x[4]),
        )  # fmt: skip
        return changed, carom.State(x[:1], x[1:2], state.t)

    return given, [-0.6, -0.2, 1.3, -0.8, 0.1], 1.6, 1


def balls() -> Any:
    """One is thrown at another that falls and spins: by their places, the throw, a mass and the friction."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.2, restitution=0.8)
    how: dict[str, Any] = {"shapes": [carom.Sphere(RADIUS)], "friction": 0.2, "restitution": 0.8}
    b.add_body("first", mass=1.0, position=(0, 0, 0.4), angular_velocity=(0, 20, 0), **how)
    b.add_body("second", mass=1.0, position=(0.6, 0.05, 0.5), linear_velocity=(-3, 0, -0.5), **how)
    model, state = carom.compile_scene(b)

    def given(x: jax.Array) -> Any:
        changed = model.replace(mass=model.mass.at[0].set(x[3]), pair_friction=model.pair_friction * x[4])
        q, v = state.q.at[2].set(x[0]).at[8].set(x[1]), state.v.at[9].set(x[2])
        return changed, carom.State(q, v, state.t)

    return given, [0.4, 0.05, -3.0, 1.0, 1.0], 0.45, 3


@pytest.mark.parametrize("scene", [pendulum, hammer, balls])
def test_against_differences(scene: Any) -> None:
    """In forward mode, by the start and by parameters of the model."""
    given, start, end, impacts = scene()

    def run(x: jax.Array) -> Any:
        model, state = given(x)
        model = model.replace(gap_band=jnp.full_like(model.gap_band, NARROW))
        return carom.rollout(model, state, duration=end, frame_dt=end, max_contacts=4, **RUN)

    def last(x: jax.Array) -> tuple[jax.Array, Any]:
        ran = run(x)
        return jnp.concatenate([ran.state.q, ran.state.v]), (ran.code, ran.stats.impacts)

    x = jnp.asarray(start)
    forward, (code, count) = jax.jit(jax.jacfwd(last, has_aux=True))(x)
    assert (int(code), int(count)) == (results.OK, impacts)
    expected = differences(lambda x: last(x)[0], x, 1e-5)
    # differences: 1e-9 of the band, 1e-10 of their length; where an impact turns slip, its third derivative is larger
    np.testing.assert_allclose(forward, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_of_a_sliding_box() -> None:
    """It slides on four corners and stops: x = v^2 / (2 mu g). Forward and reverse are the same number.

    Where the slide stops is a solution of order 2 in the step, and found to 1e-3 of the last one.
    """
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(friction=0.4, restitution=0.0)
    b.add_body("box", shapes=[carom.Box((0.2, 0.15, 0.1))], mass=2.0, position=(0, 0, 0.1), friction=0.4)
    model, state = carom.compile_scene(b)
    x = jnp.array([1.5, 0.4])

    def end(x: jax.Array, **how: Any) -> Any:
        changed = model.replace(pair_friction=jnp.full_like(model.pair_friction, x[1]))
        start = carom.State(state.q, state.v.at[3].set(x[0]), state.t)
        run = carom.rollout(changed, start, duration=0.5, frame_dt=0.5, max_contacts=4, **RUN, **how)
        return run.state.q[0], run.code

    forward, code = jax.jit(jax.jacfwd(end, has_aux=True))(x)
    assert int(code) == results.OK
    v, mu = x
    np.testing.assert_allclose(forward, [v / (mu * G), -v * v / (2 * mu * mu * G)], rtol=1e-4)
    reverse, code = jax.jit(jax.grad(functools.partial(end, reverse=True, max_ticks=160), has_aux=True))(x)
    assert int(code) == results.OK
    np.testing.assert_allclose(reverse, forward, rtol=1e-9)


def test_too_few_ticks_are_said() -> None:
    """A run that has not reached its end has a code that says so, and ends where it got."""
    height, (code, _, ticks) = fallen(jnp.asarray(START), reverse=True, max_ticks=9)
    assert (int(code), int(ticks)) == (results.TICKS_CAPPED, 9)
    assert RADIUS < float(height) < START[0] + RADIUS
