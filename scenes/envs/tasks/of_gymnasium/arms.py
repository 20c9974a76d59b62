"""Reacher and Pusher: arms that bring a tip or a cylinder to a target."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from ...scene_task import Period, Task
from .bodies import fk
from .files import import_asset, options, square

STEP = 0.01  # [s] the files'


def reacher(*, frame_skip: int = 2, reward_dist_weight: float = 1.0, reward_control_weight: float = 1.0) -> Task:
    """Reacher-v5: bring the tip of two links to a target. Parameters are gymnasium's."""
    file = import_asset("reacher.xml", "carom/Reacher-v5")

    def begin(key: Array, q: Array, v: Array) -> tuple[Array, Array]:
        shift, rotation_key, away, speed = jax.random.split(key, 4)
        arm = q[:2] + jax.random.uniform(shift, (2,), q.dtype, -0.1, 0.1)
        angle = jax.random.uniform(rotation_key, (), q.dtype, -jnp.pi, jnp.pi)
        radius = 0.2 * jnp.sqrt(jax.random.uniform(away, (), q.dtype))  # evenly over the disc
        goal = radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        rates = v[:2] + jax.random.uniform(speed, (2,), v.dtype, -0.005, 0.005)
        return jnp.concatenate([arm, goal]), jnp.concatenate([rates, jnp.zeros_like(rates)])

    def apart(s: Period) -> Array:
        return _between(s, "fingertip", "target")

    def info(s: Period) -> dict[str, Array]:
        return {
            "reward_dist": -reward_dist_weight * jnp.sqrt(square(apart(s))),
            "reward_ctrl": -reward_control_weight * square(s.action),
        }

    return Task(
        name="carom/Reacher-v5",
        description="bring the tip of two links to a target",
        scene=file,
        dt=frame_skip * STEP,
        max_steps=50,
        start=begin,
        observe=lambda s: jnp.concatenate([jnp.cos(s.q[:2]), jnp.sin(s.q[:2]), s.q[2:], s.v[:2], apart(s)[:2]]),
        reward=lambda s: info(s)["reward_dist"] + info(s)["reward_ctrl"],
        info=info,
        options=options(STEP),
    )


def pusher(
    *, frame_skip: int = 5, reward_near_weight: float = 0.5, reward_dist_weight: float = 1.0,
    reward_control_weight: float = 0.1,
) -> Task:  # fmt: skip
    """Pusher-v5: push a cylinder to a goal with an arm of seven joints. Parameters are gymnasium's."""
    file = import_asset("pusher_v5.xml", "carom/Pusher-v5")

    def begin(key: Array, q: Array, v: Array) -> tuple[Array, Array]:
        position_key, speed = jax.random.split(key)

        def draw(now: tuple[Array, Array]) -> tuple[Array, Array]:
            key, own = jax.random.split(now[0])
            low, high = jnp.array([-0.3, -0.2], q.dtype), jnp.array([0.0, 0.2], q.dtype)
            return key, jax.random.uniform(own, (2,), q.dtype, low, high)

        near = 0.17  # [m] of the goal
        _, at = jax.lax.while_loop(lambda now: ~(square(now[1]) > near**2), draw, (position_key, jnp.zeros(2, q.dtype)))
        rates = v[:7] + jax.random.uniform(speed, (7,), v.dtype, -0.005, 0.005)
        q = jnp.concatenate([q[:7], at, jnp.zeros(2, q.dtype)])
        return q, jnp.concatenate([rates, jnp.zeros(4, v.dtype)])

    def info(s: Period) -> dict[str, Array]:
        near, far = _between(s, "object", "tips_arm"), _between(s, "object", "goal")
        return {
            "reward_dist": -reward_dist_weight * jnp.sqrt(square(far)),
            "reward_ctrl": -reward_control_weight * square(s.action),
            "reward_near": -reward_near_weight * jnp.sqrt(square(near)),
        }

    def observe(s: Period) -> Array:
        bodies = [_at(s, name) for name in ("tips_arm", "object", "goal")]
        return jnp.concatenate([s.q[:7], s.v[:7], *bodies])

    return Task(
        name="carom/Pusher-v5",
        description="push a cylinder to a goal with an arm",
        scene=file,
        dt=frame_skip * STEP,
        max_steps=100,
        start=begin,
        observe=observe,
        reward=lambda s: info(s)["reward_dist"] + info(s)["reward_ctrl"] + info(s)["reward_near"],
        info=info,
        options=options(STEP),
    )


def _at(s: Period, body: str) -> Array:
    """Position (3,) of a body in the world [m]."""
    return fk(s.model, s.q).position[s.model.topology.link(body)]


def _between(s: Period, a: str, b: str) -> Array:
    """Vector (3,) from b to a [m]."""
    return _at(s, a) - _at(s, b)
