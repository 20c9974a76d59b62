"""Stable-Baselines3 learns on an environment of ours as it is, where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
sb3: Any = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")

import carom  # noqa: E402


def test_its_checker_finds_nothing_wrong() -> None:
    from stable_baselines3.common.env_checker import check_env  # pyright: ignore[reportMissingImports]

    carom.register_envs()
    check_env(gymnasium.make("carom/Juggler-v0").unwrapped, warn=False)


@pytest.mark.exhaustive
def test_it_learns_to_balance() -> None:
    """A cart-pole for longer than at random, which is 22 periods on average."""
    from stable_baselines3.common.evaluation import evaluate_policy  # pyright: ignore[reportMissingImports]

    carom.register_envs()
    env = gymnasium.make("carom/CartPole-v0")
    learner = sb3.PPO("MlpPolicy", env, n_steps=512, seed=0, device="cpu").learn(8192)
    returns, _ = evaluate_policy(learner, env, n_eval_episodes=10)
    assert np.mean(returns) > 80
