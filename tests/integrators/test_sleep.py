"""What a tick leaves as it was sleeps: for nothing, until it is pushed, and with the same states to the last bit."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.scenes.library.registry import library_scene
from carom.scenes.live.world import Live


def _boxes():
    """Three boxes that fall a little way onto each other, askew."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.5)
    for k in range(3):
        place = (0.02 * k, 0.01 * k * k, 0.11 + 0.23 * k)
        b.add_body(f"box{k}", [carom.Box((0.1, 0.1, 0.1))], mass=1.0 + k, position=place, friction=0.5)
    return carom.compile_scene(b.build())


def _awake(model, state, t):
    """An order that says nothing; what functions tell may change at any time, and keeps a lane awake."""
    return jnp.zeros(model.topology.nv)


def _same(a, b):
    return all((np.asarray(x) == np.asarray(y)).all() for x, y in ((a.t, b.t), (a.q, b.q), (a.v, b.v)))


def test_what_rests_comes_to_stand_still_and_sleeps():
    model, state = _boxes()
    asleep = carom.rollout(model, state, duration=8.0, frame_dt=1 / 60)
    awake = carom.rollout(model, state, duration=8.0, frame_dt=1 / 60, forces=_awake)
    assert _same(asleep, awake)
    assert (np.asarray(asleep.v[180:]) == 0).all()
    assert (np.asarray(asleep.q[180:]) == np.asarray(asleep.q[180])).all()
    assert int(awake.stats.ticks) >= 8 * 240
    assert int(asleep.stats.ticks) < 3 * 240 + 500
    np.testing.assert_allclose(asleep.q[-1, 2::7], [0.1, 0.3, 0.5], atol=1e-8)


def test_a_crooked_stack_does_not_creep():
    """Loads shared in a way of their own leave more than rounding of g h: what solvers leave stands still, too."""
    b, rng = carom.SceneBuilder(), np.random.default_rng(1)
    b.add_plane(friction=0.5)
    for k in range(8):
        x, y = rng.uniform(-0.02, 0.02, 2)
        b.add_body(f"box{k}", [carom.Box((0.1, 0.1, 0.1))], mass=1.0, position=(x, y, 0.1 + 0.2 * k), friction=0.5)
    model, state = carom.compile_scene(b.build())
    end = carom.rollout(model, state, duration=10.0, frame_dt=0.5)
    assert (np.asarray(end.v) == 0).all()
    assert (np.asarray(end.q) == np.asarray(state.q)).all()
    assert int(end.stats.ticks) < 60


def test_crooked_stacks_do_not_creep_in_single_precision():
    """The accuracy of the solver leaves a tilt in each box, which all boxes above it add to."""
    b, rng, lanes, n = carom.SceneBuilder(), np.random.default_rng(1), 16, 10
    b.add_plane(friction=0.5)
    for k in range(n):
        b.add_body(f"box{k}", [carom.Box((0.5, 0.5, 0.5))], mass=1.0, position=(0, 0, 0.5 + k), friction=0.5)
    model, state = carom.compile_scene(b.build(), dtype=np.float32)
    q = np.tile(np.asarray(state.q), (lanes, 1)).reshape(lanes, n, 7)
    q[..., :2] += rng.uniform(-0.01, 0.01, (lanes, n, 2))
    states = replace(carom.tile(state, lanes), q=jnp.asarray(q.reshape(lanes, -1), np.float32))
    end = carom.rollout(model, states, duration=5.0, frame_dt=0.5)
    assert (np.asarray(end.v)[:, -1] == 0).all()
    np.testing.assert_allclose(end.q[:, -1], states.q, atol=1e-4)  # some move for a few steps before they sleep
    assert np.median(end.stats.ticks) < 10
    assert np.max(end.stats.ticks) < 60


def test_orders_wake_it():
    model, state = _boxes()
    rows: Any = np.zeros((600, model.topology.nv))
    rows[300:303, 3] = 200.0  # on the lowest box
    rows[400:, 15] = 30.0  # on the highest, as long as the run

    def told(model, state, t):
        frame = jnp.clip(jnp.floor(t * 60 + 1e-6), 0, 599).astype(jnp.int32)
        return jnp.asarray(rows)[frame]

    asleep = carom.rollout(model, state, duration=10.0, frame_dt=1 / 60, forces=rows)
    awake = carom.rollout(model, state, duration=10.0, frame_dt=1 / 60, forces=told)
    np.testing.assert_allclose(asleep.q, awake.q, atol=1e-9)
    assert int(asleep.stats.ticks) < int(awake.stats.ticks) - 100
    assert np.abs(np.asarray(asleep.q[-1] - asleep.q[300])).max() > 0.1


def test_lanes_sleep_each_for_itself():
    model, state = _boxes()
    lanes = carom.tile(state, 3)
    lanes = replace(lanes, v=lanes.v.at[1, 3].set(1.0).at[2, 5].set(5.0))
    together = carom.rollout(model, lanes, duration=5.0, frame_dt=1 / 60)
    for k in range(3):
        alone = carom.rollout(model, jax.tree.map(lambda x, k=k: x[k], lanes), duration=5.0, frame_dt=1 / 60)
        assert _same(alone, jax.tree.map(lambda x, k=k: x[k], together))


def test_the_least_slope_starts_a_ball():
    """Nothing is held that a force moves: a ten-millionth of its weight, on ice."""
    b = carom.SceneBuilder(gravity=(1e-6, 0.0, -9.81))
    b.add_plane(friction=0.0)
    b.add_body("ball", [carom.Sphere(0.1)], mass=2.0, position=(0, 0, 0.1), friction=0.0)
    model, state = carom.compile_scene(b.build())
    end = carom.rollout(model, state, duration=4.0, frame_dt=1.0)
    np.testing.assert_allclose(end.q[:, 0], 0.5e-6 * np.asarray(end.t) ** 2, rtol=1e-9)


@pytest.mark.parametrize("part", [1e-3, 1e-2])
def test_a_slight_slope_starts_a_ball_in_single_precision(part):
    b = carom.SceneBuilder(gravity=(part * 9.81, 0.0, -9.81))
    b.add_plane(friction=0.0)
    b.add_body("ball", [carom.Sphere(0.1)], mass=2.0, position=(0, 0, 0.1), friction=0.0)
    model, state = carom.compile_scene(b.build(), dtype=np.float32)
    end = carom.rollout(model, state, duration=2.0, frame_dt=1.0)
    np.testing.assert_allclose(end.q[:, 0], 0.5 * part * 9.81 * np.asarray(end.t) ** 2, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_derivatives_do_not_sleep():
    """Of where a ball on ice is, by its speed at the start and the force on it, where it does not move."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.0)
    b.add_body("ball", [carom.Sphere(0.1)], mass=2.0, position=(0, 0, 0.1), friction=0.0)
    model, state = carom.compile_scene(b.build())

    def end(given):
        forces, v = jnp.zeros(6).at[3].set(given[1]), state.v.at[3].set(given[0])
        run = carom.rollout(model, replace(state, v=v), duration=3.0, frame_dt=0.5, forces=forces)
        return run.q[-1, 0]

    still = jnp.zeros(2)
    assert float(end(still)) == 0
    slopes = [float(jax.jvp(end, (still,), (way,))[1]) for way in jnp.eye(2)]
    np.testing.assert_allclose(slopes, [3.0, 3.0**2 / (2 * 2.0)], rtol=1e-9)


def test_a_world_asleep_is_as_if_it_was_not():
    """Every frame's bits, contacts too, against a world that never knows what its last frame was."""
    world, other = (Live(library_scene("stack", n=3), dtype="float64") for _ in range(2))
    for frame in range(200):
        for w in (world, other):
            if frame == 120:
                w.apply_impulse("box2", (0.5, 0.1, 0.0))
            if frame == 40:
                w.apply_force("box1", (0.01, 0.0, 0.0))
        other._parts.stepper._asleep = None
        world.step()
        other.step()
        assert world.hash() == other.hash()
        for a, b in zip(world.contact_events(), other.contact_events(), strict=True):
            assert (a.a, a.b, a.phase, a.impacts) == (b.a, b.b, b.phase, b.impacts)
            assert (a.impulse == b.impulse).all()
            assert (a.point == b.point).all()
        np.testing.assert_array_equal(world.poses(), other.poses())
    slept = world._parts.stepper._asleep is not None
    assert slept
    assert np.abs(world.pose("box2")[:2]).max() > 1e-3


def test_what_turns_about_a_clock_does_not_sleep():
    """A slider that a function of time moves up and down stands still for a moment only."""
    b = carom.SceneBuilder()
    b.add_plane()
    b.add_body("ball", [carom.Sphere(0.1)], mass=1.0, position=(0, 0, 0.1))
    b.add_link("slider", joint=carom.Prismatic(axis=(1, 0, 0)), mass=1.0, inertia=(1, 1, 1))
    drive = carom.Driven(function=lambda t: jnp.where(t < 2.0, 0.0, 0.1 * jnp.sin(t - 2.0) ** 3))
    b.add_loop("slider", joint=drive)
    model, state = carom.compile_scene(b.build())
    end = carom.rollout(model, state, duration=4.0, frame_dt=0.5)
    want = np.where(end.t < 2.0, 0, 0.1 * np.sin(np.asarray(end.t) - 2.0) ** 3)
    np.testing.assert_allclose(end.q[:, 7], want, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_wall_that_was_shaken_falls_asleep(seed):
    """25 bricks, 160 contacts: what they ask for contradicts itself, and what the solver leaves must not move them."""
    b, rng = carom.SceneBuilder(), np.random.default_rng(seed)
    b.add_plane(friction=0.6)
    for k in range(25):
        row, place = divmod(k, 5)
        at = (0.51 * place + 0.17 * (row % 2), 0.0, 0.1 + 0.2 * row)
        w, v = 0.1 * rng.normal(size=(2, 3))
        b.add_body(
            f"brick{k}", [carom.Box((0.25, 0.15, 0.1))], mass=1.0, position=at, friction=0.6, linear_velocity=tuple(v),
            angular_velocity=tuple(w),
        )  # fmt: skip
    model, state = carom.compile_scene(b.build())
    run = carom.rollout(model, state, duration=2.0, frame_dt=0.1, window=1e-3, max_events=0)
    assert int(run.code) == carom.Code.OK
    assert float(jnp.abs(run.v[-10:]).max()) == 0, "it sleeps for a second"
    assert int(run.stats.ticks) < 200
    assert float(run.stats.max_penetration) < 1e-3
