"""Chains by angles: positions of joints from their angles and back. Both ways are exact; lengths cannot drift."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..algebra.vec2 import Vec2
from ..shaped import Float
from .accelerations import joint_alpha, joint_angles, joint_rates, read
from .links import only
from .model import OPEN, Chain, ChainState


def chain_state(
    model: Chain,
    angle: Float[Array, "*#batch links"],
    rate: Float[Array, "*#batch links"],
    *,
    base: Float[Array, "*#batch 2"] | None = None,
    base_rate: Float[Array, "*#batch 2"] | None = None,
) -> ChainState:
    """The state at these angles and rates of the joints (..., n - 1) [rad, rad/s], nothing stuck or shut, at t = 0.

    Angles are those of `Chain.lower`: the first from the x axis, each other from the link before it.
    base, base_rate: position and velocity of joint 0 [m, m/s]; None: the origin, at rest.
    """
    angle, rate = jnp.asarray(angle), jnp.asarray(rate)
    if angle.shape[-1] != model.n - 1 or rate.shape[-1] != model.n - 1:
        raise ValueError(
            f"chain_state: angle {angle.shape} and rate {rate.shape} must have {model.n - 1} numbers, one for each "
            f"link of {model.n} joints"
        )
    batch = jnp.broadcast_shapes(angle.shape[:-1], rate.shape[:-1])
    start = jnp.zeros(2, angle.dtype) if base is None else jnp.asarray(base)
    start_rate = jnp.zeros(2, angle.dtype) if base_rate is None else jnp.asarray(base_rate)
    phi, omega = jnp.cumsum(angle, -1), jnp.cumsum(rate, -1)
    r = jnp.stack([jnp.cos(phi), jnp.sin(phi)], -1)
    across = jnp.stack([-r[..., 1], r[..., 0]], -1)
    length = model.length[..., None]

    def accumulate(first: Array, steps: Array) -> Array:
        first = jnp.broadcast_to(first, (*batch, 2))[..., None, :]
        steps = jnp.broadcast_to(steps, (*batch, *steps.shape[-2:]))
        return jnp.concatenate([first, first + jnp.cumsum(steps, -2)], -2)

    x, v = accumulate(start, length * r), accumulate(start_rate, length * omega[..., None] * across)
    none = jnp.zeros((*batch, model.n), jnp.int32)
    return ChainState(x, v, jnp.zeros(batch, x.dtype), none - 1, none + OPEN)


def chain_angles(
    model: Chain, state: ChainState
) -> tuple[Float[Array, "*#batch links"], Float[Array, "*#batch links"]]:
    """Angles of the joints in (-pi, pi] and their rates, (..., n - 1) each [rad, rad/s]."""
    rows, _, link = read(model, state)
    angle, rate = (jnp.where(rows.linked, a, 0)[:-1] for a in (joint_angles(link), joint_rates(link)))
    return jnp.moveaxis(angle, 0, -1), jnp.moveaxis(rate, 0, -1)


def chain_angular(model: Chain, state: ChainState, a: Float[Array, "*#batch n 2"]) -> Float[Array, "*#batch links"]:
    """alpha^z (..., n - 1): accelerations of the angles by the joints' accelerations a (..., n, 2) (13).

    For links of constant length: 2 l' omega/l of others is not counted.
    """
    rows, _, link = read(model, state)
    alpha = joint_alpha(link.L, only(rows.there, Vec2.of(a)))
    return jnp.moveaxis(jnp.where(rows.linked, alpha, 0)[:-1], 0, -1)
