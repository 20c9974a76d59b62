"""InvertedPendulum and InvertedDoublePendulum: links to be kept upright on a cart."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from .....engine.dynamics.energy import momentum
from ...actuators import control
from ...scene_task import Period, Task
from .bodies import fk
from .files import finite, import_asset, options, start

TIP = (0.0, 0.0, 0.6)  # [m] the file's site "tip", in the upper pole


def inverted_pendulum(*, frame_skip: int = 2, reset_noise_scale: float = 0.01) -> Task:
    """InvertedPendulum-v5. Parameters are gymnasium's."""
    step, file = 0.02, import_asset("inverted_pendulum.xml", "carom/InvertedPendulum-v5")

    def upright(s: Period) -> Array:
        return finite(s) & ~(jnp.abs(s.q[1]) > 0.2)

    return Task(
        name="carom/InvertedPendulum-v5",
        description="keep a pole upright on a cart",
        scene=file,
        dt=frame_skip * step,
        start=start(file, reset_noise_scale, normal=False),
        reward=upright,
        ended=lambda s: ~upright(s),
        info=lambda s: {"reward_survive": upright(s)},
        options=options(step),
    )


def inverted_double_pendulum(
    *, frame_skip: int = 5, healthy_reward: float = 10.0, reset_noise_scale: float = 0.1
) -> Task:
    """InvertedDoublePendulum-v5. Parameters are gymnasium's.

    The last number of the observation, the force of the rail's ends on the cart, is a mean over the period, impacts
    included, while gymnasium has that of its last step.
    """
    step, file = 0.01, import_asset("inverted_double_pendulum.xml", "carom/InvertedDoublePendulum-v5")
    dt = frame_skip * step

    def tip(s: Period) -> Array:
        at, k = fk(s.model, s.q), s.model.topology.link("pole2")
        return at.position[k] + at.rotation[k] @ jnp.array(TIP, s.q.dtype)

    def stop_force(s: Period) -> Array:
        """Mean force of the stops along x: the change of momentum, less that from motor, damping and gravity [N]."""
        gained = momentum(s.model, s.state).linear[0] - momentum(s.model, s.before).linear[0]
        pushed = control(s.model, file.report.actuators, s.action)[0] + s.model.mass.sum() * s.model.gravity[0]
        braked = s.model.damping[0] * (s.q[0] - s.before.q[0]) / dt
        return jnp.where(s.steps > 0, gained / dt - pushed + braked, 0.0)

    def info(s: Period) -> dict[str, Array]:
        x, _, y = tip(s)
        return {
            "reward_survive": healthy_reward * (y > 1),
            "distance_penalty": -(0.01 * x**2 + (y - 2) ** 2),
            "velocity_penalty": -(1e-3 * s.v[1] ** 2 + 5e-3 * s.v[2] ** 2),
        }

    def observe(s: Period) -> Array:
        angles, force = s.q[1:], stop_force(s)
        return jnp.concatenate(
            [s.q[:1], jnp.sin(angles), jnp.cos(angles), jnp.clip(s.v, -10, 10), jnp.clip(force, -10, 10)[None]]
        )

    return Task(
        name="carom/InvertedDoublePendulum-v5",
        description="keep two poles upright on a cart",
        scene=file,
        dt=dt,
        start=start(file, reset_noise_scale, normal=True),
        observe=observe,
        reward=lambda s: sum(info(s).values(), jnp.zeros_like(s.q[0])),
        ended=lambda s: tip(s)[2] <= 1,
        info=info,
        options=options(step),
    )
