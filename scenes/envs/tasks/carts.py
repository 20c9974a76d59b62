"""The common part of tasks with a cart: pendulums on it, to be kept upright or to be swung up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from ..closed_forms import Rods
from ..sketches import on_a_cart
from ..starts import uniform
from ..task import Advance, BatchTask, BoxSpace, Discrete


def cart_task(
    name: str,
    description: str,
    *,
    rods: Rods,
    engines: Mapping[str, Callable[[DTypeLike], Advance]],
    dt: float,
    max_steps: int,
    actions: BoxSpace | Discrete,
    force: Callable[[Array], Array],
    start: float,
    tilt: float | None = None,
    track: float = 2.4,
) -> BatchTask:
    """Pendulums on a cart. See `BatchTask` for the other parameters.

    force: action -> (...) on the cart [N].  start: every coordinate and rate begins within it [m, rad, m/s, rad/s].
    tilt: keep every link within this angle from the vertical [rad]: reward 1 a step, observation
        (x, x', theta_1..., theta_1'...). None: swing up, from hanging: reward the height of the tip, 0 at its lowest
        and 1 at its highest, observation (x, x', cos theta_1..., sin theta_1..., theta_1'...).
    track: the cart must keep |x| <= track [m].
    """
    n, high = len(rods.mass), sum(rods.length)
    hanging = jnp.pi * (jnp.arange(n + 1) == 1)  # joint angles: the first link hangs, the others go on from it

    def begin(key: Array) -> tuple[Array, Array]:
        drawn = uniform(key, *[start] * (2 * n + 2))
        q, v = drawn[..., : n + 1], drawn[..., n + 1 :]
        return (q if tilt is not None else q + hanging), v

    def observe(q: Array, v: Array) -> Array:
        theta, omega = jnp.cumsum(q[..., 1:], -1), jnp.cumsum(v[..., 1:], -1)
        angles = [theta] if tilt is not None else [jnp.cos(theta), jnp.sin(theta)]
        return jnp.concatenate([q[..., :1], v[..., :1], *angles, omega], -1)

    def reward(q: Array, v: Array, push: Array, q_next: Array, v_next: Array) -> Array:
        if tilt is not None:
            return jnp.ones_like(q_next[..., 0])
        tip = (jnp.cos(jnp.cumsum(q_next[..., 1:], -1)) * jnp.array(rods.length, q.dtype)).sum(-1)
        return (1 + tip / high) / 2

    def has_ended(q: Array, v: Array) -> Array:
        off = abs(q[..., 0]) > track
        return off if tilt is None else off | (abs(jnp.cumsum(q[..., 1:], -1)) > tilt).any(-1)

    def push(action: Array) -> Array:
        F = force(action)
        return jnp.stack([F, *[jnp.zeros_like(F)] * n], -1)

    angles = (inf,) * n if tilt is not None else (1.0,) * (2 * n)
    return BatchTask(
        name=name,
        description=description,
        dt=dt,
        max_steps=max_steps,
        actions=actions,
        observations=BoxSpace.of(inf, inf, *angles, *[inf] * n),
        start=begin,
        observe=observe,
        push=push,
        reward=reward,
        ended=has_ended,
        engines=engines,
        sketch=lambda q: on_a_cart(q, rods.length, track),
        window=(-track - 0.2, track + 0.2, -1.3 * high, 1.3 * high),
    )


def along(box: BoxSpace, gain: float = 1.0) -> Callable[[Array], Array]:
    """An action (..., 1), clipped to its box, as a force."""
    return lambda action: gain * jnp.clip(action[..., 0], box.low[0], box.high[0])
