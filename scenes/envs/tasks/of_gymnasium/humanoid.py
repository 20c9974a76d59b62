"""Humanoid: two legs, a trunk and arms."""

from __future__ import annotations

from math import inf

import jax.numpy as jnp
from jax import Array

from ...actuators import control
from ...scene_task import Period, Task
from .bodies import body_inertias, body_velocities, center_of_mass, contact_wrenches, run_reward, run_terms
from .files import ROOT_V, import_asset, options, qvel, square, start

STEP = 0.003  # [s] the file's


def humanoid(
    *, frame_skip: int = 5, forward_reward_weight: float = 1.25, ctrl_cost_weight: float = 0.1,
    contact_cost_weight: float = 5e-7, contact_cost_range: tuple[float, float] = (-inf, 10.0),
    healthy_reward: float = 5.0, terminate_when_unhealthy: bool = True,
    healthy_z_range: tuple[float, float] = (1.0, 2.0), reset_noise_scale: float = 1e-2,
    exclude_current_positions_from_observation: bool = True, include_cinert_in_observation: bool = True,
    include_cvel_in_observation: bool = True, include_qfrc_actuator_in_observation: bool = True,
    include_cfrc_ext_in_observation: bool = True,
) -> Task:  # fmt: skip
    """Humanoid-v5: walk along x. Parameters are gymnasium's.

    Inertias and velocities of bodies are those of the state itself, while gymnasium's are those before the last of its
    steps. Contact forces are as in `ant`.
    """
    file, dt = import_asset("humanoid.xml", "carom/Humanoid-v5"), frame_skip * STEP
    skipped = 2 * int(exclude_current_positions_from_observation)
    reports = include_cfrc_ext_in_observation or contact_cost_weight != 0

    def forces(s: Period) -> Array:
        return contact_wrenches(s.model, s.q, s.report, dt)

    def healthy(s: Period) -> Array:
        return (healthy_z_range[0] < s.q[2]) & (s.q[2] < healthy_z_range[1])

    def info(s: Period) -> dict[str, Array]:
        velocity = (center_of_mass(s.model, s.q) - center_of_mass(s.model, s.before.q)) / dt
        cost = contact_cost_weight * square(forces(s)) if reports else jnp.zeros_like(s.q[0])
        cost = jnp.clip(cost, *contact_cost_range)
        return run_terms(s, velocity, forward_reward_weight, ctrl_cost_weight, cost, healthy_reward * healthy(s))

    def observe(s: Period) -> Array:
        parts = [s.q[skipped:], qvel(s)]
        if include_cinert_in_observation:
            parts.append(body_inertias(s.model, s.q))
        if include_cvel_in_observation:
            parts.append(body_velocities(s.model, s.q, s.v))
        if include_qfrc_actuator_in_observation:
            parts.append(control(s.model, file.report.actuators, s.action)[ROOT_V:])
        if include_cfrc_ext_in_observation:
            parts.append(forces(s))
        return jnp.concatenate([part.reshape(-1) for part in parts])

    return Task(
        name="carom/Humanoid-v5",
        description="walk on two legs",
        scene=file,
        dt=dt,
        start=start(file, reset_noise_scale, normal=False),
        observe=observe,
        reward=lambda s: run_reward(info(s)),
        ended=lambda s: ~healthy(s) & terminate_when_unhealthy,
        info=info,
        report=("contact_forces", "contact_impulses") if reports else (),
        options=options(STEP),
    )
