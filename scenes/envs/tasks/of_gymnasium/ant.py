"""Ant: four legs under a ball."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...scene_task import Period, Task
from .bodies import contact_wrenches, fk, run_reward, run_terms
from .files import finite, import_asset, options, qvel, square, start

STEP = 0.01  # [s] the file's


def ant(
    *, frame_skip: int = 5, forward_reward_weight: float = 1.0, ctrl_cost_weight: float = 0.5,
    contact_cost_weight: float = 5e-4, healthy_reward: float = 1.0, main_body: int | str = 1,
    terminate_when_unhealthy: bool = True, healthy_z_range: tuple[float, float] = (0.2, 1.0),
    contact_force_range: tuple[float, float] = (-1.0, 1.0), reset_noise_scale: float = 0.1,
    exclude_current_positions_from_observation: bool = True, include_cfrc_ext_in_observation: bool = True,
) -> Task:  # fmt: skip
    """Ant-v5: run along x. Parameters are gymnasium's.

    Contact forces are means over the period, impacts included, while gymnasium has those of its last step. They are not
    computed if neither the observation nor the cost needs them.
    """
    file, dt = import_asset("ant.xml", "carom/Ant-v5"), frame_skip * STEP
    skipped = 2 * int(exclude_current_positions_from_observation)
    main = main_body if isinstance(main_body, str) else file.scene.links[main_body - 1].name
    reports = include_cfrc_ext_in_observation or contact_cost_weight != 0

    def forces(s: Period) -> Array:
        return jnp.clip(contact_wrenches(s.model, s.q, s.report, dt), *contact_force_range)

    def healthy(s: Period) -> Array:
        return finite(s) & (healthy_z_range[0] <= s.q[2]) & (s.q[2] <= healthy_z_range[1])

    def torso_position(s: Period, q: Array) -> Array:
        return fk(s.model, q).position[s.model.topology.link(main), :2]

    def info(s: Period) -> dict[str, Array]:
        velocity = (torso_position(s, s.q) - torso_position(s, s.before.q)) / dt
        cost = contact_cost_weight * square(forces(s)) if reports else jnp.zeros_like(s.q[0])
        return run_terms(s, velocity, forward_reward_weight, ctrl_cost_weight, cost, healthy_reward * healthy(s))

    def observe(s: Period) -> Array:
        own = [s.q[skipped:], qvel(s)]
        return jnp.concatenate([*own, forces(s).reshape(-1)] if include_cfrc_ext_in_observation else own)

    return Task(
        name="carom/Ant-v5",
        description="run on four legs",
        scene=file,
        dt=dt,
        start=start(file, reset_noise_scale, normal=True),
        observe=observe,
        reward=lambda s: run_reward(info(s)),
        ended=lambda s: ~healthy(s) & terminate_when_unhealthy,
        info=info,
        report=("contact_forces", "contact_impulses") if reports else (),
        options=options(STEP),
    )
