"""Three links that lift a weight (Wawrzynski 13.3)."""

from __future__ import annotations

from math import inf, pi

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...library.wawrzynski import weightlifter as scene
from ..closed_forms import Rods
from ..engines import formulas, planar, smooth, tree
from ..sketches import INK, linkage
from ..starts import uniform
from ..task import BatchTask, BoxSpace, Segment

GRAVITY = 9.81


def efforts(weight: float, strength: float) -> tuple[float, float, float]:
    """Largest torques of the joints [N m]: a share `strength` of those that hold the arm straight out."""
    return tuple(strength * GRAVITY * m for m in (3 + 3 * weight, 1 + 2 * weight, weight))  # type: ignore[return-value]


def weightlifter(*, weight: float = 1.0, strength: float = 0.5) -> BatchTask:
    """Lift a weight [kg] from hanging to upright with joints too weak to lift it slowly: it must be swung.

    After Rosenstein and Barto (2001); the text leaves weight and torques open. Each joint gives at most `strength`
    times the torque that holds the arm straight out: up to 0.9, a slow arm cannot lift it.
    Reward: the weight's height, 0 at its lowest and 1 at its highest, less 0.05 times the mean square of the torques
    over their bounds. 500 steps of 0.02 s; the episode never ends before. Starts within 0.1 of hanging at rest.
    Observation: (cos theta_1..., sin theta_1..., theta_1'...), theta_1 from the horizontal.
    """
    if not (weight > 0 and strength > 0):
        raise ValueError(f"weightlifter: weight {weight} kg and strength {strength} must be positive")
    torques = BoxSpace.of(*efforts(weight, strength))
    bound = np.array(torques.high)
    rods = Rods(mass=(1.0, 1.0, weight), centre=(1.0,) * 3, length=(1.0,) * 3, inertia=(0.0,) * 3, upright=False)

    def start(key: Array) -> tuple[Array, Array]:
        drawn = uniform(key, *[0.1] * 6)
        return drawn[..., :3] - jnp.array([pi / 2, 0, 0]), drawn[..., 3:]

    def reward(q: Array, v: Array, push: Array, q_next: Array, v_next: Array) -> Array:
        height = jnp.sin(jnp.cumsum(q_next, -1)).sum(-1)
        return (1 + height / 3) / 2 - 0.05 * ((push / bound.astype(q.dtype)) ** 2).mean(-1)

    def sketch(q: np.ndarray) -> list[Segment]:
        arm = linkage(0.0, 0.0, np.cumsum(q), (1.0,) * 3, 0.06)
        x, y = arm[-1][2:4]
        return [*arm, (0.0, 0.0, 0.0, 0.0, 0.08, INK), (x, y, x, y, 0.15, INK)]

    return BatchTask(
        name="weightlifter",
        description="swing a weight up that could not be lifted slowly",
        dt=0.02,
        max_steps=500,
        actions=torques,
        observations=BoxSpace.of(*[1.0] * 6, *[inf] * 3),
        start=start,
        observe=lambda q, v: jnp.concatenate([jnp.cos(q), jnp.sin(q), v], -1),
        push=lambda action: jnp.clip(action, -bound.astype(action.dtype), bound.astype(action.dtype)),
        reward=reward,
        ended=lambda q, v: jnp.zeros(q.shape[:-1], bool),
        engines=smooth(0.02, 10, closed=formulas(rods), planar=planar(rods), tree=tree(scene(weight=weight))),
        sketch=sketch,
        window=(-3.4, 3.4, -3.4, 3.4),
    )
