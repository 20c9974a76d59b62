"""The quadruped: what it is paid, what it sees, how episodes begin and end, and that all it does is simulated."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import carom
from carom.scenes.envs.tasks.quadruped import CELL, POINTS, STAND, ground, quadruped

LANES, PERIODS = 8, 25


@pytest.mark.slow
def test_random_actions() -> None:
    """Reward, observation and ends are as documented; no lane is given up."""
    env = carom.make_env("quadruped", dtype="float64")
    state, first = env.reset(jax.random.split(jax.random.key(0), LANES))
    assert first.shape == (LANES, 46)
    np.testing.assert_allclose(first[:, :3], [[0, 0, 1]] * LANES, rtol=0, atol=1e-12)
    box: Any = env.actions
    command = np.asarray(state.command)
    assert ((command >= 0.15) & (command <= 0.45)).all()
    assert len(np.unique(state.parameters["pair_friction"])) == LANES
    actions = np.random.default_rng(0).uniform(box.low, box.high, (PERIODS, LANES, 12))
    for action in actions:
        state, observation, reward, terminated, truncated, info = env.step_with_info(state, jnp.asarray(action))
        q, v = np.array(state.q), np.array(state.v)
        turn = Rotation.from_quat(q[:, [4, 5, 6, 3]]).inv()
        up, velocity, rates = turn.apply([[0, 0, 1]] * LANES), turn.apply(v[:, 3:6]), turn.apply(v[:, :3])
        np.testing.assert_allclose(observation[:, :9], np.hstack([up, velocity, rates]), rtol=0, atol=1e-9)
        np.testing.assert_allclose(observation[:, 9:21], q[:, 7:] - STAND * 4, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(observation[:, 21:], np.hstack([v[:, 6:], action, command[:, None]]))
        unsteady = velocity[:, 1] ** 2 + (rates[:, :2] ** 2).sum(1)
        tracked = np.exp(-(((velocity[:, 0] - command) / 0.15) ** 2))
        paid = 0.5 + tracked - 0.02 * unsteady - 2e-4 * (v[:, 6:] ** 2).sum(1)
        np.testing.assert_allclose(reward, paid, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(terminated, up[:, 2] < 0.5)  # and no lane was given up
        np.testing.assert_array_equal(info["speed"], observation[:, 3])
        assert not truncated.any()
    assert np.isfinite(state.q).all()
    off = state._replace(q=state.q.at[:, 0].set(CELL * (POINTS - 1) / 2 - 0.4).at[:, 3:7].set([1, 0, 0, 0]))
    assert env.step(off, jnp.asarray(actions[0])).terminated.all()


@pytest.mark.slow
def test_it_stands() -> None:
    """Told the angles it stands at, on flat ground: level, its feet on the ground, its weight on its feet."""
    task = quadruped(roughness=0.0)
    model, state = task.compiled("float64")
    run = carom.rollout(model, state, duration=3.0, frame_dt=0.5, options=task.options, report="contact_forces")
    weight = float(model.mass.sum()) * 9.81
    np.testing.assert_allclose(run.report["contact_forces"][-1, :, 5].sum(), weight, rtol=1e-3)
    np.testing.assert_allclose(run.q[-1, 3:7], [1, 0, 0, 0], rtol=0, atol=0.05)
    assert 0.28 < float(run.q[-1, 2]) < 0.35


def test_the_ground() -> None:
    hills = ground(0.03)
    assert hills.shape == (POINTS, POINTS)
    assert 0 <= hills.min() < 0.005
    assert 0.025 < hills.max() <= 0.03
    with pytest.raises(ValueError, match=r"roughness 1\.0 must be from 0 to 0\.1 m"):
        quadruped(roughness=1.0)
