"""Two links on a bar (Wawrzynski 13.2)."""

from __future__ import annotations

from math import inf, pi

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...library.wawrzynski import acrobot as scene
from ..closed_forms import Rods
from ..engines import formulas, smooth, tree
from ..sketches import INK, linkage
from ..starts import uniform
from ..task import BatchTask, BoxSpace, Discrete, Segment

LINKS = Rods(mass=(1.0, 1.0), centre=(0.5, 0.5), length=(1.0, 1.0), inertia=(1.0, 1.0), upright=False)


def acrobot(*, both: bool = False) -> BatchTask:
    """Swing the feet a link's length above the bar, by a torque of -1, 0 or 1 N m at the hip.

    Constants, actions, starts (all four numbers within 0.1 of hanging at rest), the period of 0.2 s, 500 steps and the
    reward of -1 a step, 0 for the last, are those of gymnasium's Acrobot-v1, after Sutton (1996), which also clips the
    rates; here they are not clipped. Observation: (cos, sin of theta_1, cos, sin of theta_2, theta_1', theta_2'),
    theta_1 from the horizontal as in the text.
    both: any torques within 1 N m, at the wrists and at the hip.
    """

    def start(key: Array) -> tuple[Array, Array]:
        drawn = uniform(key, 0.1, 0.1, 0.1, 0.1)
        return drawn[..., :2] - jnp.array([pi / 2, 0]), drawn[..., 2:]

    def observe(q: Array, v: Array) -> Array:
        c, s = jnp.cos(q), jnp.sin(q)
        return jnp.concatenate([c[..., :1], s[..., :1], c[..., 1:], s[..., 1:], v], -1)

    def push(action: Array) -> Array:
        if both:
            return jnp.clip(action, -1, 1)
        return jnp.stack([jnp.zeros_like(action), jnp.clip(action, 0, 2) - 1], -1)

    def has_ended(q: Array, v: Array) -> Array:
        return jnp.sin(q[..., 0]) + jnp.sin(q[..., 0] + q[..., 1]) > 1

    def sketch(q: np.ndarray) -> list[Segment]:
        mark: Segment = (-2.0, 1.0, 2.0, 1.0, 0.01, INK)
        return [mark, *linkage(0.0, 0.0, np.cumsum(q), (1.0, 1.0), 0.06), (0.0, 0.0, 0.0, 0.0, 0.06, INK)]

    return BatchTask(
        name="acrobot",
        description="swing an acrobat's feet above the bar",
        dt=0.2,
        max_steps=500,
        actions=BoxSpace.of(1.0, 1.0) if both else Discrete(3),
        observations=BoxSpace.of(1.0, 1.0, 1.0, 1.0, inf, inf),
        start=start,
        observe=observe,
        push=push,
        reward=lambda q, v, push, q_next, v_next: jnp.where(has_ended(q_next, v_next), 0.0, -1.0).astype(q.dtype),
        ended=has_ended,
        engines=smooth(0.2, 20, closed=formulas(LINKS), tree=tree(scene())),
        sketch=sketch,
        window=(-2.3, 2.3, -2.3, 2.3),
    )
