"""Loops that are open because lengths have changed: runs say so, and `close_loops` closes them."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import carom
from carom.engine.results import LOOPS_OPEN, SimulationError, SimulationWarning


@pytest.fixture(scope="module")
def four_bar():
    return carom.compile_scene(carom.load("four_bar"), dtype="float64")


def longer(model, factor):
    return model.replace(loop_position=factor * model.loop_position)


@pytest.mark.parametrize("factor", [1.02, 3.0])
def test_a_changed_length_is_closed_and_runs_on(four_bar, factor):
    model, state = longer(four_bar[0], factor), four_bar[1]
    with pytest.warns(SimulationWarning, match=r"loops of the initial state are open by .*close_loops"):
        carom.rollout(model, state, duration=0.1)
    closed = carom.close_loops(model, state)
    ends = carom.closed(model, closed.q, closed.v)
    assert max(float(jnp.abs(ends.error).max()), float(jnp.abs(ends.rate).max())) < 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = carom.rollout(model, closed, duration=0.5)
    energies = [float(carom.energy(model, carom.State(run.q[k], run.v[k], run.t[k])).total) for k in (0, -1)]
    np.testing.assert_allclose(*energies, rtol=1e-6)


def test_what_cannot_close_stays_open(four_bar):
    model = four_bar[0].replace(loop_position=100 * four_bar[0].loop_position)
    closed = carom.close_loops(model, four_bar[1])
    assert not float(jnp.abs(carom.closed(model, closed.q, closed.v).error).max()) < 1


def test_its_derivatives_are_differences(four_bar):
    def q(factor):
        return carom.close_loops(longer(four_bar[0], factor), four_bar[1]).q

    slope, h = (q(1.1 + 1e-5) - q(1.1 - 1e-5)) / 2e-5, 1.1
    np.testing.assert_allclose(jax.jacfwd(q)(h), slope, rtol=1e-7)
    np.testing.assert_allclose(jax.jacrev(q)(h), slope, rtol=1e-7)


@pytest.mark.parametrize(
    ("joint", "free"), [(carom.Fixed(), 0), (carom.Prismatic((0, 0, 1)), 0), (carom.Revolute((0, 0, 1)), 1)]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_frames_turned_by_any_angle_close_the_short_way(joint, free, dtype):
    """Also by half a turn, where the sines of all angles are 0. free: axes about which the joint may turn."""
    scene = carom.SceneBuilder(gravity=(0, 0, 0))
    scene.add_body("box", [carom.Box((0.1, 0.2, 0.3))])
    scene.add_loop("box", (0, 0, 0), "world", ((0.4, 0, 1), (1, 0, 0, 0)), joint=joint)
    model, state = carom.compile_scene(scene, dtype=dtype)
    about_x = Rotation.from_rotvec(np.outer(np.radians((80, 91, 179, 180)), (1, 0, 0)))
    turns = Rotation.concatenate(
        [about_x, Rotation.from_rotvec(np.pi * np.eye(3)), Rotation.random(64, rng=np.random.default_rng(5))]
    )
    q = np.tile(np.asarray(state.q), (len(turns), 1))
    q[:, 3:] = turns.as_quat(scalar_first=True)
    start = carom.State(jnp.asarray(q, state.q.dtype), jnp.zeros((len(turns), 6), dtype), jnp.zeros(len(turns), dtype))
    ends = Rotation.from_quat(np.asarray(carom.close_loops(model, start).q)[:, 3:], scalar_first=True)
    atol = 1e-9 if dtype == "float64" else 1e-3  # of sines and cosines
    np.testing.assert_allclose(ends.apply((0, 0, 1)), np.tile((0, 0, 1), (len(turns), 1)), atol=atol)
    tilt = np.arccos(np.clip(turns.apply((0, 0, 1))[:, 2], -1, 1))
    least = tilt if free else turns.magnitude()
    np.testing.assert_allclose((ends * turns.inv()).magnitude(), least, atol=10 * atol)


def test_a_scene_without_loops_stays(four_bar):
    model, state = carom.compile_scene(carom.load("pendulum"))
    assert carom.close_loops(model, state) is state


R, ROD = 0.1, 0.3  # crank and connecting rod [m]


def slider_crank(rate, x0, ball):
    """A slider crank whose slider is driven at this rate [m/s] from x0 [m], with or without something that falls."""
    b, axis = carom.SceneBuilder(gravity=(0, 0, 0)), (0, -1, 0)
    turn = np.arccos((R * R + x0 * x0 - ROD * ROD) / (2 * R * x0))
    back = np.arctan2(-R * np.sin(turn), x0 - R * np.cos(turn)) - turn
    inertia = {"mass": 1.0, "inertia": (0.01, 0.01, 0.01)}
    b.add_link("crank", joint=carom.Revolute(axis), com=(0, 0, 0), q0=turn, **inertia)
    b.add_link("rod", "crank", joint=carom.Revolute(axis), position=(R, 0, 0), com=(0.15, 0, 0), q0=back, **inertia)
    b.add_link("slider", joint=carom.Prismatic((1, 0, 0)), com=(0, 0, 0), q0=x0, **inertia)
    b.add_loop("rod", (ROD, 0, 0), "slider", (0, 0, 0), joint=carom.Revolute(axis))
    b.add_loop("slider", joint=carom.Driven(rate=rate, start=x0))
    if ball:
        b.add_body("ball", [carom.Sphere(0.1)], position=(0, 3, 0.1), mass=1.0)
        b.add_plane()
    return carom.compile_scene(b, dtype="float64")


@pytest.mark.parametrize("ball", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["free", "contacts"])
@pytest.mark.parametrize(("rate", "x0", "end"), [(0.5, 0.35, R + ROD), (-0.5, 0.25, ROD - R), (3.0, 0.35, R + ROD)])
def test_a_mechanism_that_is_driven_beyond_its_reach_stops_there(ball, rate, x0, end):
    model, state = slider_crank(rate, x0, ball)
    seconds = (end - x0) / rate
    run = carom.rollout(model, state, duration=2 * seconds, frame_dt=seconds / 20, throw=False)
    assert run.code == LOOPS_OPEN
    well = np.isfinite(run.q).all(-1)
    assert 19 <= well.sum() <= 21  # up to the dead centre, and no further
    np.testing.assert_allclose(run.q[well, 2], x0 + rate * run.t[well], atol=1e-9)
    errors = jax.vmap(lambda q, v, t: carom.closed(model, q, v, t).error)(run.q[well], run.v[well], run.t[well])
    assert float(jnp.abs(errors).max()) < 1e-4  # at the end the mechanism is singular: Newton's method is slow
    with pytest.raises(SimulationError, match="LOOPS_OPEN: the loops could not be closed"):
        carom.step(model, carom.State(run.q[well][-1], run.v[well][-1], run.t[well][-1]), dt=seconds)


@pytest.mark.slow
def test_open_loops_of_what_stands_on_the_floor_close():
    """A ball between a rope and a bar to a box is put out of place: it stood still there, with loops open by 0.8 m."""
    b, hook, box = carom.SceneBuilder(), np.array([0, 0, 3.0]), np.array([3, 0, 0.2])
    b.add_plane()
    b.add_body("ball", [carom.Sphere(0.1)], position=(0, 0, 2), mass=1.0)
    b.add_body("box", [carom.Box((0.2, 0.2, 0.2))], position=tuple(box), mass=5.0)
    b.add_loop("ball", (0, 0, 0), "world", tuple(hook), joint=carom.Distance(1.0))
    b.add_loop("ball", (0, 0, 0), "box", (0, 0, 0), joint=carom.Distance(float(np.hypot(3, 1.8))))
    model, state = carom.compile_scene(b, dtype="float64")
    state = carom.State(state.q.at[:3].set(jnp.array([1.5, 0, 4])), state.v, state.t)
    with pytest.warns(SimulationWarning, match="loops of the initial state are open by 0.8"):
        run = carom.rollout(model, state, duration=0.2, frame_dt=0.1)
    error = carom.closed(model, run.q[-1], run.v[-1], run.t[-1]).error
    assert float(jnp.abs(error).max()) < 1e-9
