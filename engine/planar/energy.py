"""Energy and momentum of planar chains."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ..shaped import Float
from .model import Chain, ChainState


def chain_energy(model: Chain, state: ChainState) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
    """Kinetic and potential energy (...) [J]; the latter is zero with all masses at the origin."""
    mass = jnp.where(jnp.arange(model.n) < model.joints[..., None], model.mass, 0)
    speed = jnp.where((mass > 0)[..., None], state.v, 0)
    x = jnp.where((mass > 0)[..., None], state.x, 0)
    kinetic = 0.5 * (mass[..., None] * speed**2).sum((-1, -2))
    return kinetic, -((mass[..., None] * x).sum(-2) * model.gravity).sum(-1)


def chain_momentum(model: Chain, state: ChainState) -> tuple[Float[Array, "*#batch 2"], Float[Array, "*#batch"]]:
    """Momentum [kg m/s] and angular momentum about the origin [kg m^2/s]."""
    mass = jnp.where(jnp.arange(model.n) < model.joints[..., None], model.mass, 0)
    x, v = (jnp.where((mass > 0)[..., None], a, 0) for a in (state.x, state.v))
    p = mass[..., None] * v
    return p.sum(-2), (x[..., 0] * p[..., 1] - x[..., 1] * p[..., 0]).sum(-1)
