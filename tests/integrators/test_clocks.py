"""Clocks of islands: who goes apart comes to the same as who waits, in fewer ticks, and nobody is met out of time."""

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.collision.detect import detect_with_bounds
from carom.contact.determine import SIGHT
from carom.integrators.clock_assignment import clocks_may_differ, separate_islands
from carom.integrators.clocks import STEPS
from carom.integrators.motion.forces import Drive
from carom.integrators.options import Options
from carom.integrators.rules import Rules
from carom.integrators.sensitivity import detection_ranges

from .bouncing import RUN, two_balls

MAX_DT, BALLS, BOXES = 1 / 240, 6, 4
MASSES = (1.0, 0.02, 3.0, 0.5, 0.001, 2.0, 1.0, 0.1, 5.0, 0.01)


@functools.cache
def _bodies():
    """Balls and boxes of 1 g to 5 kg over a floor, some bouncy, some not."""
    b = carom.SceneBuilder()
    b.add_plane(friction=0.4, restitution=0.5)
    for k, mass in enumerate(MASSES):
        shape = carom.Sphere(0.1) if k < BALLS else carom.Box((0.1, 0.08, 0.12))
        b.add_body(f"body{k}", [shape], mass=mass, position=(0.5 * k, 0, 0.5), friction=0.3, restitution=0.3 + 0.06 * k)
    return carom.compile_scene(b.build())


@functools.cache
def _many_balls():
    """That fall from heights which all differ, far from each other."""
    b = carom.SceneBuilder()
    b.add_plane(restitution=0.8, friction=0.0)
    for k in range(40):
        place = (k % 7, k // 7, 0.3 + 0.01 * (k * 17 % 40))
        b.add_body(f"ball{k}", [carom.Sphere(0.1)], mass=1.0, position=place, restitution=0.8, friction=0.0)
    return carom.compile_scene(b.build())


def _thrown(seed, spread=1.5, speed=4.0):
    """Anywhere, though not in each other, and any way; some lie on the floor."""
    model, state = _bodies()
    rng, n = np.random.default_rng(seed), len(MASSES)
    places: list[np.ndarray] = []
    while len(places) < n:
        place = np.array([*rng.uniform(-spread, spread, 2), rng.uniform(0.2, 1.5)])
        if len(places) % 4 == 1:
            place[2] = 0.1 if len(places) < BALLS else 0.12
        if all(np.linalg.norm(place - other) > 0.4 for other in places):
            places.append(place)
    turn = rng.normal(size=(n, 4))
    for k in range(n):
        if k % 4 == 1:
            turn[k] = (1, 0, 0, 0)
    q = np.concatenate([places, turn / np.linalg.norm(turn, axis=1, keepdims=True)], 1)
    v = rng.normal(size=(n, 6)) * speed
    v[:, 5] = -np.abs(v[:, 5])
    v[np.arange(n) % 4 == 1] = 0
    return model, replace(state, q=jnp.asarray(q.ravel()), v=jnp.asarray(v.ravel()))


def _run(model, state, clocks, duration=0.5, max_dt=MAX_DT, **more):
    return carom.rollout(
        model, state, duration=duration, frame_dt=0.05, max_dt=max_dt, clocks=clocks, max_contacts=64, throw=False,
        **more,
    )  # fmt: skip


def _log(run):
    n = int(run.events.count)
    return {name: np.asarray(getattr(run.events, name))[:n] for name in ("t", "pair", "point", "impulse")}


@pytest.mark.parametrize("seed", range(6))
def test_what_is_cut_comes_to_the_same(seed):
    """Until rounding has grown through too many impacts between bodies of 1 g and 5 kg."""
    model, state = _thrown(seed)
    one, many = (_run(model, state, clocks, 0.25) for clocks in ("one", "islands"))
    assert one.code == many.code == carom.Code.OK
    first, second = _log(one), _log(many)
    assert len(first["t"]) >= 4
    assert (np.diff(second["t"]) >= 0).all()
    order = np.lexsort((first["pair"], first["t"].round(9))), np.lexsort((second["pair"], second["t"].round(9)))
    np.testing.assert_array_equal(first["pair"][order[0]], second["pair"][order[1]])
    np.testing.assert_allclose(second["t"][order[1]], first["t"][order[0]], rtol=0, atol=1e-8)
    np.testing.assert_allclose(second["point"][order[1]], first["point"][order[0]], rtol=0, atol=1e-6)
    np.testing.assert_allclose(many.q, one.q, rtol=0, atol=1e-6)


def test_ticks_are_those_of_the_busiest():
    model, state = _many_balls()
    one, many = (_run(model, state, clocks, 0.9, max_dt=1 / 20) for clocks in ("one", "auto"))
    assert int(many.stats.ticks) < 0.5 * int(one.stats.ticks)
    assert int(many.events.count) == int(one.events.count) > 50
    assert (np.diff(many.events.t[: int(many.events.count)]) >= 0).all()
    np.testing.assert_allclose(many.q, one.q, rtol=0, atol=1e-12)
    lost = [np.asarray(run.events.energy_before - run.events.energy_after) for run in (one, many)]
    np.testing.assert_allclose(*lost, rtol=0, atol=1e-11)


@pytest.mark.parametrize("seed", range(40))
def test_no_two_islands_meet(seed):
    """All impacts and all contacts of a run in one piece, from a random state, are within islands."""
    spread, speed = (0.8, 3.0) if seed % 2 else (2.0, 20.0)
    model, state = _thrown(seed, spread, speed)
    time = STEPS * MAX_DT
    push = np.random.default_rng(seed).normal(size=model.topology.nv) * (0.5 if seed % 3 else 0)
    island = _cut(model, state, jnp.asarray(push), time)
    run = carom.rollout(
        model, state, duration=time, frame_dt=time / 8, max_dt=MAX_DT, clocks="one", max_contacts=64, throw=False,
        forces=jnp.asarray(push),
    )  # fmt: skip
    met = {tuple(x) for x in _log(run)["pair"][:, None].tolist()}
    for q in np.asarray(run.q):
        near = carom.detect(model, q, margin=1e-9)
        met |= {(int(k),) for k in np.asarray(near.pair)[np.asarray(near.active & (near.gap <= 1e-9))]}
    links = np.array(model.topology.shape_links)[np.array(model.topology.pairs)[sorted(k for (k,) in met)]]
    assert all(island[a] == island[b] for a, b in links if min(a, b) >= 0)


def test_islands_are_cut_at_all():
    """Far from each other each goes alone; a box between two others is tied to them; what is fast is tied to more."""
    model, state = _thrown(3, spread=20.0, speed=1.0)
    alone = _cut(model, state, jnp.zeros(model.topology.nv), 1 / 60)
    np.testing.assert_array_equal(alone, np.arange(len(MASSES)))
    q, v = (np.array(x).reshape(len(MASSES), -1) for x in (state.q, state.v * 0))
    q[:, 3:] = (1, 0, 0, 0)
    q[:3, :3] = [(50, 0, 1), (50.21, 0, 1), (50.42, 0, 1)]  # balls of 0.1 m, 1 cm apart
    near = replace(state, q=jnp.asarray(q.ravel()), v=jnp.asarray(v.ravel()))
    np.testing.assert_array_equal(_cut(model, near, jnp.zeros(60), 1 / 60)[:4], [0, 1, 2, 3])
    v[1, 3] = 0.7
    near = replace(near, v=jnp.asarray(v.ravel()))
    np.testing.assert_array_equal(_cut(model, near, jnp.zeros(60), 1 / 60)[:4], [0, 0, 0, 3])


@jax.jit
def _cut(model, state, push, time):
    look = detection_ranges(Rules(), model, state.q, state.v, jnp.asarray(MAX_DT), time)
    _, bounds = detect_with_bounds(model, state.q, look.close, reach=look.reach)
    sight = SIGHT[state.q.dtype.itemsize] * model.gap_band
    return separate_islands(model, state, Drive(forces=push), bounds, look.reach, sight, jnp.asarray(time)).island


def test_a_shot_meets_what_it_would_meet():
    """A ball at 60 m/s through a row of others, each far enough from the next to go by a clock of its own if alone."""
    model, state = _bodies()
    q, v = (np.array(x).reshape(len(MASSES), -1) for x in (state.q, state.v * 0))
    q[:, 3:], q[:, :3] = (1, 0, 0, 0), [(0.9 * k, 30 if k else 0.02, 0.6) for k in range(len(MASSES))]
    q[1:BALLS, 1] = 0
    v[0, 3] = 60.0
    state = replace(state, q=jnp.asarray(q.ravel()), v=jnp.asarray(v.ravel()))
    one, many = (_run(model, state, clocks, 0.2) for clocks in ("one", "islands"))
    assert len(set(_log(one)["pair"].tolist())) >= 3
    np.testing.assert_array_equal(_log(one)["pair"], _log(many)["pair"])
    np.testing.assert_allclose(_log(one)["t"], _log(many)["t"], rtol=0, atol=1e-9)


def test_who_waits_is_not_taken_to_rest():
    """One lies still, one rests in the air where it waits for the others, for as long as these bounce."""
    model, state = _bodies()
    n = len(MASSES)
    q, v = (np.array(x).reshape(n, -1) for x in (state.q, state.v * 0))
    q[:, 3:], q[:, :3] = (1, 0, 0, 0), [(3.0 * k, 0, 0.1 if k < BALLS else 0.12) for k in range(n)]
    q[1, 2], q[3, 2] = 0.8, 0.13
    state = replace(state, q=jnp.asarray(q.ravel()), v=jnp.asarray(v.ravel()))
    one, many = (_run(model, state, clocks, 2.0) for clocks in ("one", "islands"))
    assert float(many.q[-1].reshape(n, 7)[1, 2]) < 0.2
    np.testing.assert_allclose(many.q, one.q, rtol=0, atol=1e-5)
    assert int(many.stats.ticks) < 600  # and once all of them rest, they sleep


def test_a_lane_is_the_same_alone_and_in_a_batch():
    model, _ = _bodies()
    states = [_thrown(seed)[1] for seed in (7, 8)]
    both = jax.tree.map(lambda *x: jnp.stack(x), *states)
    together = _run(model, both, "islands")
    for k, state in enumerate(states):
        alone = _run(model, state, "islands")
        np.testing.assert_array_equal(alone.q, together.q[k])
        n = int(alone.events.count)
        np.testing.assert_array_equal(alone.events.t[:n], together.events.t[k, :n])


def test_a_run_in_two_parts_is_the_same():
    """At a frame, where all clocks meet."""
    model, state = _thrown(9)
    whole, first = (_run(model, state, "islands", duration) for duration in (0.2, 0.1))
    second = _run(model, first.state, "islands", 0.1)
    np.testing.assert_array_equal(whole.q[-1], second.q[-1])
    np.testing.assert_array_equal(whole.v[-1], second.v[-1])


def test_steps_are_frames():
    model, state = _thrown(9)
    frames = _run(model, state, "islands", 0.15)
    for k in range(1, 4):
        state = carom.step(model, state, dt=0.05, max_dt=MAX_DT, clocks="islands", max_contacts=64)
        np.testing.assert_array_equal(state.q, frames.q[k])
        np.testing.assert_array_equal(state.v, frames.v[k])


def test_forces_from_outside_tie_what_they_drive_together():
    model, state = _thrown(3, spread=6.0, speed=0.1)
    push = np.zeros((10, model.topology.nv))
    push[4:, 3::6] = np.array(MASSES) * 60 * np.where(np.arange(len(MASSES)) % 2, 1, -1)
    one, many = (_run(model, state, clocks, forces=jnp.asarray(push)) for clocks in ("one", "islands"))
    assert int(one.events.count) > 5
    # what rolls and slides is of order 2 in its steps, and these differ
    np.testing.assert_allclose(many.q, one.q, rtol=0, atol=2e-4)


@pytest.mark.slow
def test_a_derivative_goes_by_one_clock():
    model, state = two_balls()
    push = jnp.asarray(np.random.default_rng(0).normal(size=state.v.shape))
    shorter: Any = {**RUN, "duration": 0.5}

    def end(v):
        return carom.rollout(model, replace(state, v=v), clocks="islands", **shorter).q[-1]

    slope, h = jax.jvp(end, (state.v,), (push,))[1], 1e-6
    steps = (end(state.v + h * push) - end(state.v - h * push)) / (2 * h)
    np.testing.assert_allclose(slope, steps, rtol=0, atol=1e-6)


def test_a_full_log_says_so():
    model, state = _thrown(1)
    run = _run(model, state, "islands", max_events=4)
    assert int(run.events.count) == 4
    assert int(run.events.missed) == int(run.stats.impacts) - 4 > 0
    assert run.code == carom.Code.EVENTS_FULL
    assert (np.diff(np.asarray(run.events.t)) >= 0).all()


def test_who_may_have_clocks_of_their_own():
    topology = _bodies()[0].topology
    assert clocks_may_differ(Rules(limits=False, clocks="islands"), topology)
    assert not clocks_may_differ(Rules(limits=False), topology)  # so few are not worth it
    assert not clocks_may_differ(Rules(limits=False, clocks="one"), topology)
    assert not clocks_may_differ(Rules(limits=False, clocks="islands", law="newton"), topology)
    assert not clocks_may_differ(Rules(limits=False, clocks="islands", time_control="fixed"), topology)
    assert clocks_may_differ(Rules(limits=False), _many_balls()[0].topology)
    with pytest.raises(ValueError, match="clocks is 'mine'; it must be one of auto, islands, one"):
        Options(clocks="mine")
