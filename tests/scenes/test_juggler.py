"""The juggler: impacts in closed form, an episode that no step length changes, and a law that juggles."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import carom
from carom.scenes.envs.tasks.juggler import BALL_MASS, GRAVITY, PADDLE_INERTIA, PADDLE_MASS, RADIUS, THICKNESS, juggler

MASS, LANES, DT = BALL_MASS + PADDLE_MASS, 8, 0.02
STAND = THICKNESS + RADIUS  # [m] of a ball on the paddle
MEAN = 0.9 * 0.95  # restitution of an episode that nobody knows
HELD = jnp.array([0.0, 0.0, PADDLE_MASS * GRAVITY])  # what carries the paddle


def law(observation: Any) -> Any:
    """Meet the ball in the middle as fast as sends it to its height, tilted as sends it to the middle (after Buehler,
    Koditschek and Kindlmann 1994, who mirrored the ball's height)."""
    tilt, x, z, turn, along, up, ball_x, ball_z, ball_along, ball_up, height = jnp.moveaxis(observation, -1, 0)
    top = jnp.maximum(ball_z + ball_up**2 / (2 * GRAVITY), STAND + 1e-3)
    falls, rises = jnp.sqrt(2 * GRAVITY * (top - STAND)), jnp.sqrt(2 * GRAVITY * (height - STAND))
    left = jnp.maximum((ball_up + falls) / GRAVITY, 0.01)  # [s] until they meet
    meet = (MASS * rises + (BALL_MASS - MEAN * PADDLE_MASS) * falls) / (PADDLE_MASS * (1 + MEAN))
    far, near = -6 * z / left**2 - (4 * up + 2 * meet) / left, (meet - up) / jnp.maximum(left, DT)
    there = ball_x + ball_along * left
    wanted = (ball_along + there * GRAVITY / (2 * rises)) / ((1 + MEAN) * (meet + falls))
    side = PADDLE_MASS * (200 * (there - x) - 30 * along)
    torque = PADDLE_INERTIA * (400 * (wanted - tilt) - 40 * turn)
    return jnp.stack([torque, side, PADDLE_MASS * (GRAVITY + jnp.where(left > 0.03, far, near))], -1)


@functools.cache
def played(max_dt: float) -> Any:
    """350 periods under the law: (observations, rewards, ends, apexes, restitutions) of LANES lanes."""
    env = carom.Environment(dataclasses.replace(juggler(), options=carom.Options(max_dt=max_dt)), dtype="float64")
    begun = env.reset(jax.random.split(jax.random.key(1), LANES))

    def period(now: Any, _: Any) -> Any:
        state, observation = now
        after = env.step_with_info(state, law(observation))
        told = after.observation, after.reward, after.terminated, after.info["apex"][:, 0]
        return (after.state, after.observation), told

    told = jax.jit(lambda: jax.lax.scan(period, begun, length=350)[1])()
    return *map(np.asarray, told), np.asarray(begun[0].parameters["pair_restitution"][:, 0])


@pytest.mark.slow
def test_it_juggles() -> None:
    """Whatever the restitution, which the law does not know; apexes are as far off as it is."""
    _, reward, ended, apex, e = played(DT)
    assert not ended.any()
    assert len(np.unique(e)) == LANES
    assert (reward[100:].mean(0) > 0.4).all()
    assert reward[100:].mean() > 0.6
    assert (apex[100:].max(0) < 1.2).all()


@pytest.mark.slow
def test_the_reward_is_as_told() -> None:
    observation, reward, _, apex, _ = played(DT)
    force = np.asarray(law(observation[:-1]))[..., 1:]
    expected = np.exp(-10 * np.abs(apex - observation[..., -1]))[1:] - 1e-5 * (force**2).sum(-1)
    np.testing.assert_allclose(reward[1:], expected, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_an_apex_is_a_constant_of_a_flight() -> None:
    """And changes at impacts alone: some fifteen in seven seconds."""
    observation, _, _, apex, _ = played(DT)
    jumps = np.abs(np.diff(apex, axis=0))
    struck = observation[1:, :, 9] > observation[:-1, :, 9] - GRAVITY * DT + 1e-9  # what rises faster than it fell
    assert (jumps[~struck] < 1e-12).all()
    assert (struck.sum(0) >= 8).all()
    assert (struck.sum(0) <= 25).all()


@pytest.mark.slow
def test_no_step_length_changes_an_episode() -> None:
    for one, other in zip(played(DT)[:4], played(DT / 20)[:4], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-7)


def test_a_blow_is_that_of_two_masses() -> None:
    """The paddle rises at 1 m/s, held against its weight, when it meets the ball."""
    env = carom.Environment(juggler(), dtype="float64")
    state, _ = env.reset(jax.random.key(3))
    gap, falls, rises = 0.03, 2.0, 1.0
    q = jnp.array([0.0, 0.0, 0.0, 0.0, 0.0, STAND + gap])
    after = env.step(state._replace(q=q, v=jnp.array([0.0, 0.0, rises, 0.0, 0.0, -falls])), HELD).state
    near = falls + rises
    t = (-near + np.sqrt(near**2 + 2 * GRAVITY * gap)) / GRAVITY  # near t + g t^2 / 2 = gap
    before, e = -falls - GRAVITY * t, float(state.parameters["pair_restitution"][0])
    common = (BALL_MASS * before + PADDLE_MASS * rises) / MASS
    ball, paddle = (common + e * m / MASS * (rises - before) for m in (PADDLE_MASS, -BALL_MASS))
    np.testing.assert_allclose(after.v[2], paddle, rtol=0, atol=1e-12)
    np.testing.assert_allclose(after.v[5], ball - GRAVITY * (DT - t), rtol=0, atol=1e-12)
    np.testing.assert_allclose(after.q[2], rises * t + paddle * (DT - t), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_lost_ball_ends_the_episode_and_balls_meet() -> None:
    env = carom.make_env("juggler", balls=2, dtype="float64")
    assert env.observations.shape == (6 + 2 * 4 + 1,)
    state, _ = env.reset(jax.random.key(0))
    after = env.step(state._replace(q=state.q.at[4].set(1.999), v=state.v.at[4].set(1.0)), HELD)
    assert bool(after.terminated)
    over = jnp.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5 + 2 * RADIUS + 0.01])
    met = env.step(state._replace(q=over, v=jnp.zeros(9).at[8].set(-1.0)), HELD).state
    e = float(state.parameters["pair_restitution"][-1])
    falling = np.array([1 + e, 1 - e]) / 2 * -1.0 - GRAVITY * DT  # equal masses
    np.testing.assert_allclose(met.v[jnp.array([5, 8])], falling, rtol=0, atol=1e-12)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="juggler: 0 balls"):
        juggler(balls=0)
    with pytest.raises(ValueError, match=r"restitution 1\.5"):
        juggler(restitution=1.5)
