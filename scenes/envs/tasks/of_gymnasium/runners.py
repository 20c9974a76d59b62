"""HalfCheetah, Hopper and Walker2d: robots that run along x, in a plane."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import jax.numpy as jnp
from jax import Array

from ...scene_task import Period, Task
from .files import import_asset, options, square, start


def half_cheetah(
    *, frame_skip: int = 5, forward_reward_weight: float = 1.0, ctrl_cost_weight: float = 0.1,
    reset_noise_scale: float = 0.1, exclude_current_positions_from_observation: bool = True,
) -> Task:  # fmt: skip
    """HalfCheetah-v5: run to the right. Parameters are gymnasium's."""
    step, skipped = 0.01, int(exclude_current_positions_from_observation)
    file, dt = import_asset("half_cheetah.xml", "carom/HalfCheetah-v5"), frame_skip * step

    def info(s: Period) -> dict[str, Array]:
        speed = (s.q[0] - s.before.q[0]) / dt
        return {
            "x_position": s.q[0], "x_velocity": speed, "reward_forward": forward_reward_weight * speed,
            "reward_ctrl": -ctrl_cost_weight * square(s.action),
        }  # fmt: skip

    return Task(
        name="carom/HalfCheetah-v5",
        description="run, in a plane, as fast as may be",
        scene=file,
        dt=dt,
        start=start(file, reset_noise_scale, normal=True),
        observe=lambda s: jnp.concatenate([s.q[skipped:], s.v]),
        reward=lambda s: info(s)["reward_forward"] + info(s)["reward_ctrl"],
        info=info,
        options=options(step),
    )


def hopper(
    *, frame_skip: int = 4, forward_reward_weight: float = 1.0, ctrl_cost_weight: float = 1e-3,
    healthy_reward: float = 1.0, terminate_when_unhealthy: bool = True,
    healthy_state_range: tuple[float, float] = (-100.0, 100.0), healthy_z_range: tuple[float, float] = (0.7, inf),
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2), reset_noise_scale: float = 5e-3,
    exclude_current_positions_from_observation: bool = True,
) -> Task:  # fmt: skip
    """Hopper-v5: hop to the right on one leg. Parameters are gymnasium's."""

    def healthy(s: Period) -> Array:
        rest = jnp.concatenate([s.q[2:], s.v])
        return (
            _within(rest, healthy_state_range).all()
            & _within(s.q[1], healthy_z_range)
            & _within(s.q[2], healthy_angle_range)
        )

    return _upright(
        "Hopper", "hopper.xml", "hop on one leg, in a plane", frame_skip, forward_reward_weight, ctrl_cost_weight,
        healthy_reward, terminate_when_unhealthy, healthy, reset_noise_scale,
        exclude_current_positions_from_observation,
    )  # fmt: skip


def walker2d(
    *, frame_skip: int = 4, forward_reward_weight: float = 1.0, ctrl_cost_weight: float = 1e-3,
    healthy_reward: float = 1.0, terminate_when_unhealthy: bool = True,
    healthy_z_range: tuple[float, float] = (0.8, 2.0), healthy_angle_range: tuple[float, float] = (-1.0, 1.0),
    reset_noise_scale: float = 5e-3, exclude_current_positions_from_observation: bool = True,
) -> Task:  # fmt: skip
    """Walker2d-v5: walk to the right on two legs. Parameters are gymnasium's."""

    def healthy(s: Period) -> Array:
        return _within(s.q[1], healthy_z_range) & _within(s.q[2], healthy_angle_range)

    return _upright(
        "Walker2d", "walker2d_v5.xml", "walk on two legs, in a plane", frame_skip, forward_reward_weight,
        ctrl_cost_weight, healthy_reward, terminate_when_unhealthy, healthy, reset_noise_scale,
        exclude_current_positions_from_observation,
    )  # fmt: skip


def _within(x: Array, interval: tuple[float, float]) -> Array:
    return (interval[0] < x) & (x < interval[1])


def _upright(
    name: str, xml: str, description: str, frame_skip: int, forward_reward_weight: float, ctrl_cost_weight: float,
    healthy_reward: float, terminate_when_unhealthy: bool, healthy: Callable[[Period], Array],
    reset_noise_scale: float, exclude_current_positions_from_observation: bool,
) -> Task:  # fmt: skip
    step, skipped = 0.002, int(exclude_current_positions_from_observation)
    file, dt = import_asset(xml, f"carom/{name}-v5"), frame_skip * step
    height: Any = file.scene.links[1].q0  # type: ignore[union-attr]

    def info(s: Period) -> dict[str, Array]:
        speed = (s.q[0] - s.before.q[0]) / dt
        return {
            "x_position": s.q[0], "z_distance_from_origin": s.q[1] - height, "x_velocity": speed,
            "reward_forward": forward_reward_weight * speed, "reward_ctrl": -ctrl_cost_weight * square(s.action),
            "reward_survive": healthy_reward * healthy(s),
        }  # fmt: skip

    def reward(s: Period) -> Array:
        parts = info(s)
        return parts["reward_forward"] + parts["reward_survive"] + parts["reward_ctrl"]

    return Task(
        name=f"carom/{name}-v5",
        description=description,
        scene=file,
        dt=dt,
        start=start(file, reset_noise_scale, normal=False),
        observe=lambda s: jnp.concatenate([s.q[skipped:], jnp.clip(s.v, -10, 10)]),
        reward=reward,
        ended=lambda s: ~healthy(s) & terminate_when_unhealthy,
        info=info,
        options=options(step),
    )
