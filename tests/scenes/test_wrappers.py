"""Wrappers: episodes that begin by themselves, and observations with the mean and spread of all that was seen."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import carom
from carom.scenes.envs.environment import Environment

LANES, PERIODS = 6, 80
KEYS = jax.random.split(jax.random.key(2), LANES)


def cart_pole() -> Environment:
    return carom.make_env("cart_pole", dtype="float64")


def pushes(k: int) -> Any:
    return jnp.full(LANES, 1) if k % 3 else jnp.arange(LANES) % 2


def test_episodes_begin_by_themselves() -> None:
    """As by hand; gained and length are those of each episode, its last period included."""
    env = cart_pole()
    auto = carom.AutoReset(env)
    (state, seen), (mine, own) = env.reset(KEYS), auto.reset(KEYS)
    gained, length, ends = np.zeros(LANES), np.zeros(LANES, int), 0
    for k in range(PERIODS):
        np.testing.assert_array_equal(own, seen)
        after, told = env.step(state, pushes(k)), auto.step(mine, pushes(k))
        done = after.terminated | after.truncated
        gained, length = gained + np.asarray(after.reward), length + 1
        np.testing.assert_array_equal(told.last, after.observation)
        np.testing.assert_array_equal(told.terminated, after.terminated)
        np.testing.assert_allclose(told.gained, gained, rtol=1e-12)
        np.testing.assert_array_equal(told.length, length)
        state, seen = env.restarted(after.state, after.observation, done)
        mine, own = told.state, told.observation
        gained, length, ends = np.where(done, 0, gained), np.where(done, 0, length), ends + int(done.sum())
    assert ends > LANES


def test_observations_are_normalized() -> None:
    """By the mean and spread of all observations so far, numpy's of the same."""
    env = cart_pole()
    wrapped = carom.NormalizeObservation(env)
    (state, seen), (mine, own) = env.reset(KEYS), wrapped.reset(KEYS)
    every = [np.asarray(seen)]

    def normal(x: Any) -> np.ndarray:
        rows = np.concatenate(every)
        return np.clip((np.asarray(x) - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-8), -10, 10)

    np.testing.assert_allclose(own, normal(seen), rtol=1e-9, atol=1e-12)
    for k in range(PERIODS):
        after, told = env.step(state, pushes(k)), wrapped.step(mine, pushes(k))
        every.append(np.asarray(after.observation))
        np.testing.assert_allclose(told.observation, normal(after.observation), rtol=1e-9, atol=1e-9)
        done = after.terminated | after.truncated
        state, seen = env.restarted(after.state, after.observation, done)
        mine, own = wrapped.restarted(told.state, told.observation, done)
        np.testing.assert_allclose(own, normal(seen), rtol=1e-9, atol=1e-9)
    assert mine.scale.count == LANES * (PERIODS + 1)
    kept = carom.NormalizeObservation(env, scale=mine.scale)
    again, first = kept.reset(KEYS)
    np.testing.assert_allclose(first, normal(every[0]), rtol=1e-9, atol=1e-9)
    jax.tree.map(np.testing.assert_array_equal, kept.step(again, pushes(0)).state.scale, mine.scale)


def test_one_around_the_other_in_a_scan() -> None:
    env = carom.AutoReset(carom.NormalizeObservation(cart_pole()))
    assert env.observations.high == (10.0,) * 4

    def period(now: Any, k: Any) -> Any:
        told = env.step(now[0], (now[1][:, 2] > 0).astype(int))
        return (told.state, told.observation), (told.observation, told.length)

    seen, length = jax.jit(lambda: jax.lax.scan(period, env.reset(KEYS), jnp.arange(300)))()[1]
    assert float(jnp.abs(seen).max()) <= 10
    assert int(length.max()) > 20
