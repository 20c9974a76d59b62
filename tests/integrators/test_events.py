"""Impacts are where they belong in time, whatever the frames and the steps: closed forms, and dt-independence.

One program for each scene: runs of other frame times have as many frames, and go on where the one before ended.
"""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import carom
from carom.engine import results
from carom.tests.integrators.bouncing import RADIUS, G, ball, fallen, two_balls

FRAME_DTS = (1 / 30, 1 / 240, 1 / 1000)
CLOSED = 1e-9  # s: what the closed forms ask for; their own rounding, and ours, is 1e-12
SAME = 1e-10  # s: from one frame time to another


def events(
    model: carom.Model, state: carom.State, until: float, frame_dt: float, step: Any = fallen
) -> tuple[Any, carom.State]:
    """All impacts up to a time (NumPy, real rows only), and the first frame's state at or after it."""
    found: list[Any] = []
    while True:
        run = step(model, state, frame_dt)
        rows = int(run.events.count)
        found.append({name: np.asarray(x)[:rows] for name, x in vars(run.events).items() if np.ndim(x)})
        state = run.state
        if float(state.t) >= until:
            break
    joined = {name: np.concatenate([x[name] for x in found]) for name in found[0]}
    early = joined["t"] <= until
    last = int(np.argmax(np.asarray(run.t) >= until))
    return {name: x[early] for name, x in joined.items()}, carom.State(run.q[last], run.v[last], run.t[last])


# -- the bouncing ball, references.md, Bouncing ball --------------------------------------------------------------

FIRST = np.sqrt(2 / G)
FIRST_SPEED = np.sqrt(2 * G)
ENDS = FIRST * 1.9 / 0.1  # where the bounces pile up, 8.5789 s


@functools.cache
def bounces(frame_dt: float) -> tuple[Any, carom.State]:
    return events(*ball(), 9.0, frame_dt)


@pytest.mark.parametrize("frame_dt", FRAME_DTS)
def test_bouncing_ball(frame_dt: float) -> None:
    """Every bounce down to the speed of rest, at its time and with its speed; then none, and the ball lies there."""
    log, end = bounces(frame_dt)
    k = np.arange(len(log["t"]))
    np.testing.assert_allclose(log["t"], FIRST + 2 * FIRST_SPEED / G * 0.9 * (1 - 0.9**k) / 0.1, rtol=0, atol=CLOSED)
    np.testing.assert_allclose(-log["u_before"][:, 2], FIRST_SPEED * 0.9**k, rtol=0, atol=CLOSED)
    slow = float(ball()[0].rest_speed)
    assert FIRST_SPEED * 0.9 ** len(k) <= slow < FIRST_SPEED * 0.9 ** (len(k) - 1)
    assert log["t"][-1] < ENDS < 9
    np.testing.assert_allclose(end.q[:3], [0, 0, RADIUS], rtol=0, atol=CLOSED)
    np.testing.assert_allclose(end.v, 0, rtol=0, atol=CLOSED)
    np.testing.assert_allclose(log["t"], bounces(FRAME_DTS[0])[0]["t"], rtol=0, atol=SAME)


def test_what_a_row_says() -> None:
    """The columns of the log at the first bounce, and the books of all: energy and impulse."""
    log, _ = bounces(FRAME_DTS[0])
    row = {name: x[0] for name, x in log.items()}
    np.testing.assert_array_equal(row["bodies"], [-1, 0])  # A is the ground
    assert (row["pair"], row["dof"], row["code"]) == (0, -1, results.OK)
    np.testing.assert_allclose(row["point"], 0, atol=1e-9)
    np.testing.assert_allclose(row["normal"], [0, 0, -1], atol=1e-15)  # from B to A
    np.testing.assert_allclose(row["impulse"], [0, 0, 1.9 * FIRST_SPEED], atol=1e-12)
    np.testing.assert_allclose(log["u_after"], -0.9 * log["u_before"], atol=1e-12)
    np.testing.assert_allclose(log["energy_before"], log["u_before"][:, 2] ** 2 / 2, atol=1e-12)
    np.testing.assert_allclose(log["energy_after"], 0.81 * log["energy_before"], atol=1e-12)
    assert (np.abs(2 * log["point"][:, 2]) <= float(ball()[0].gap_band)).all()  # halfway between the surfaces


def test_a_parabola_is_never_rolled_back() -> None:
    """The prediction of when a ball meets a plane is exact, however long the steps."""
    model, state = ball()
    for max_dt in (1 / 240, 1.0):
        run = fallen(model, state, 1 / 30, max_dt)
        assert int(run.stats.rollbacks) == 0
        assert int(run.stats.impacts) == len(bounces(1 / 30)[0]["t"])
        assert float(run.stats.max_penetration) <= float(model.gap_band)


# -- sliding ends at its time -------------------------------------------------------------------------


@pytest.mark.parametrize("max_dt", [1 / 60, 1 / 240])
def test_a_ball_slides_until_it_rolls(max_dt: float) -> None:
    """references.md, Rolling after sliding: 1 m/s, no spin, mu = 0.2: rolls from t = 2 v/(7 mu g) on with 5/7 m/s."""
    model, state = ball(0.2)
    state = carom.State(state.q.at[2].set(RADIUS), state.v.at[3].set(1.0), state.t)
    run = fallen(model, state, 1 / 60, max_dt)
    t_stop, x_stop, v_stop = 0.145623998835, 0.124820570430, 5 / 7
    assert int(run.events.count) == 0
    rolling = np.asarray(run.t) > t_stop
    x = np.asarray(run.q)[rolling, 0]
    np.testing.assert_allclose(np.asarray(run.v)[rolling, 3], v_stop, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.asarray(run.v)[rolling, 1], v_stop / RADIUS, rtol=0, atol=1e-8)
    np.testing.assert_allclose(x, x_stop + v_stop * (np.asarray(run.t)[rolling] - t_stop), rtol=0, atol=1e-9)
    t = np.asarray(run.t)[~rolling]
    np.testing.assert_allclose(np.asarray(run.q)[~rolling, 0], t - 0.1 * G * t * t, rtol=0, atol=1e-9)


# -- no event knows of frames or steps ------------------------------------------------------------------


def independent(model: carom.Model, state: carom.State, until: float, frame_dts: Any, step: Any) -> Any:
    """The impacts, found with each frame time, are the same ones."""
    runs = [events(model, state, until, frame_dt, step)[0] for frame_dt in frame_dts]
    for other in runs[1:]:
        np.testing.assert_array_equal(other["pair"], runs[0]["pair"])
        np.testing.assert_allclose(other["t"], runs[0]["t"], rtol=0, atol=SAME)
        np.testing.assert_allclose(other["u_after"], runs[0]["u_after"], rtol=0, atol=1e-8)
    return runs[0]


def rolled(
    model: carom.Model, state: carom.State, frame_dt: float, max_dt: float = 1 / 240, time_control: str = "rollback"
) -> Any:
    """A rollout of fewer frames."""
    return carom.rollout(
        model, state, duration=60 * frame_dt, frame_dt=frame_dt, max_dt=max_dt, time_control=time_control
    )


@pytest.mark.slow
def test_balls_that_meet_obliquely() -> None:
    """With friction and spin: floor, each other, floor again."""
    log = independent(*two_balls(), 1.0, FRAME_DTS, rolled)
    assert len(log["t"]) >= 4
    assert len(np.unique(log["pair"])) == 3


def test_ball_on_a_slope() -> None:
    """It bounces down a slope, spins up, slides, and rolls: what the bounces leave it with hangs on all of them."""
    model, state = ball(0.3, 0.5)
    tilted = model.replace(gravity=G * jnp.array([np.sin(0.3), 0, -np.cos(0.3)]))
    log = independent(tilted, state, 2.0, FRAME_DTS[:2], fallen)
    assert len(log["t"]) > 10
    first = np.sqrt(2 / (G * np.cos(0.3)))
    assert log["t"][0] == pytest.approx(first, abs=1e-12)
    # rolls: v' = 5/7 g sin, with tan 0.3 = 0.31 < 7/2 mu
    run = fallen(tilted, state, 1 / 30)
    v, t = np.asarray(run.v), np.asarray(run.t)
    late = t > 5
    np.testing.assert_allclose(np.diff(v[late, 3]) / np.diff(t[late]), 5 / 7 * G * np.sin(0.3), rtol=1e-9)
    np.testing.assert_allclose(v[late, 1] * RADIUS, v[late, 3], rtol=0, atol=1e-9)


@pytest.mark.slow
def test_cradle_of_three() -> None:
    """Gaps of 0.1 mm, e = 1: the first ball's speed is handed on, each at the time its gap takes."""
    b = carom.SceneBuilder(gravity=(0, 0, 0))
    for k, x in enumerate((-0.5, 0.0, 0.2001)):
        speed = (1.0, 0, 0) if k == 0 else (0, 0, 0)
        b.add_body(
            f"ball{k}", shapes=[carom.Sphere(RADIUS)], mass=1.0, position=(x, 0, 0), linear_velocity=speed,
            friction=0.0, restitution=1.0,
        )  # fmt: skip
    model, state = carom.compile_scene(b)
    log = independent(model, state, 1.0, FRAME_DTS, rolled)
    np.testing.assert_allclose(log["t"], [0.3, 0.3001], rtol=0, atol=1e-12)
    np.testing.assert_allclose(log["u_after"][:, 2], [1, 1], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_hinged_rod_meets_a_wall() -> None:
    """references.md, Instants of impact: let go level, its round tip meets a wall; the time is an elliptic integral."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    length, wall = 1.0, 0.35
    b.add_plane(normal=(1, 0, 0), offset=-wall, friction=0.0, restitution=0.5)
    tip = carom.Sphere(RADIUS, position=(length, 0, 0))
    b.add_link(
        "rod", joint=carom.Revolute((0, 1, 0)), mass=1.0, com=(length / 2, 0, 0), inertia=(1e-3, 1 / 12, 1 / 12),
        shapes=[tip], friction=0.0, restitution=0.5,
    )  # fmt: skip
    model, state = carom.compile_scene(b)
    fine = functools.partial(rolled, max_dt=1 / 1000)
    log = independent(model, state, 1.0, FRAME_DTS, fine)
    likely = independent(model, state, 1.0, FRAME_DTS[:1], functools.partial(fine, time_control="likely"))
    np.testing.assert_allclose(likely["t"], log["t"], rtol=0, atol=SAME)
    at = np.arccos((RADIUS - wall) / length)  # x = cos q reaches the wall; q' = sqrt(3 g/L sin q)
    # q = s^2 takes the root out of the integrand at 0
    exact = quad(lambda s: 2 * s / np.sqrt(3 * G / length * np.sin(s * s)), 0, np.sqrt(at), epsabs=1e-13)[0]
    assert log["t"][0] == pytest.approx(exact, abs=SAME)
    np.testing.assert_allclose(log["u_after"][:, 2], -0.5 * log["u_before"][:, 2], rtol=1e-9)
