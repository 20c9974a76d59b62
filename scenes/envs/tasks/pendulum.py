"""One link on a pivot (Wawrzynski 13.1): to swing it up with a torque that could not lift it."""

from __future__ import annotations

from math import inf, pi

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...library.wawrzynski import wawrzynski_pendulum as scene
from ..closed_forms import Rods
from ..engines import formulas, planar, smooth, tree
from ..sketches import INK, linkage
from ..starts import uniform
from ..task import BatchTask, BoxSpace, Segment

ROD = Rods(mass=(1.0,), centre=(1.0,), length=(1.0,), inertia=(0.0,), gravity=1.0)


def pendulum(*, effort: float = 0.225) -> BatchTask:
    """Swing the pendulum up and keep it there, by any torque within `effort`; in units where m = l = g = 1.

    Reward -(theta^2 + 0.1 theta'^2 + 0.001 tau^2) with theta in (-pi, pi] from the top, and the observation
    (cos theta, sin theta, theta'), are those of gymnasium's Pendulum-v1; so is the start anywhere on the circle,
    here with a rate within 0.25. A period is 0.1, an episode 400 of them; it never ends before.
    """
    torque = BoxSpace.of(effort)

    def start(key: Array) -> tuple[Array, Array]:
        drawn = uniform(key, pi, 0.25)
        return drawn[..., :1], drawn[..., 1:]

    def reward(q: Array, v: Array, push: Array, q_next: Array, v_next: Array) -> Array:
        theta = q[..., 0] - 2 * pi * jnp.round(q[..., 0] / (2 * pi))
        return -(theta**2 + 0.1 * v[..., 0] ** 2 + 0.001 * push[..., 0] ** 2)

    def sketch(q: np.ndarray) -> list[Segment]:
        return [*linkage(0.0, 0.0, pi / 2 - q, (1.0,), 0.05), (0.0, 0.0, 0.0, 0.0, 0.06, INK)]

    return BatchTask(
        name="pendulum",
        description="swing a pendulum up with a torque that could not lift it",
        dt=0.1,
        max_steps=400,
        actions=torque,
        observations=BoxSpace.of(1.0, 1.0, inf),
        start=start,
        observe=lambda q, v: jnp.concatenate([jnp.cos(q), jnp.sin(q), v], -1),
        push=lambda action: jnp.clip(action, -effort, effort),
        reward=reward,
        ended=lambda q, v: jnp.zeros(q.shape[:-1], bool),
        engines=smooth(0.1, 2, closed=formulas(ROD), planar=planar(ROD), tree=tree(scene(effort=effort))),
        sketch=sketch,
        window=(-1.3, 1.3, -1.3, 1.3),
    )
