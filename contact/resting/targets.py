"""Target velocities of resting contacts, from their gaps."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...engine.model import Model
from ..cone.solve import SEVERAL

STEP = 1 / 240  # [s] a shorter step closes a gap no faster than this one, since the next step may be long
CLOSING = 0.2  # share of the gap that a step closes; twice that would still not oscillate
PUSH = 0.5  # rest speeds: at a higher speed the contact would no longer count as resting


def target_velocity(model: Model, gap: Array, h: Array | float) -> Array:
    """Return the least normal velocity (C, *batch) [m/s] of a contact with this gap [m] after a step of h [s]."""
    return jnp.minimum(-CLOSING * gap / jnp.maximum(h, STEP), PUSH * model.rest_speed)


def gap_to_close(model: Model, gap: Array, resting: Array) -> Array:
    """Return the part of gaps (C, *batch) [m] that a step is to close: all, or the excess over a band if many rest.

    resting: (C, *batch) bool.

    Many contacts have more targets than degrees of freedom, and their targets would contradict each other.
    """
    band = jnp.where(resting.sum(0) > SEVERAL, model.gap_band, 0)
    return gap - jnp.clip(gap, -band, band)
