"""Gaps of resting contacts, and how fast a step is to close them."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...engine.model import Model
from ..cone.solve import SEVERAL

STEP = 1 / 240  # [s] a shorter step must not close a gap faster than this one: the next may be long
CLOSING = 0.2  # of the gap a step closes; twice that would still not oscillate
PUSH = 0.5  # rest speeds: faster, and the contact would no longer count as resting


def aimed_at(model: Model, gap: Array, h: Array | float) -> Array:
    """The normal velocity (C, *batch) that a contact with this gap [m] is to have after a step of h [s], or more."""
    return jnp.minimum(-CLOSING * gap / jnp.maximum(h, STEP), PUSH * model.rest_speed)


def to_close(model: Model, gap: Array, resting: Array, bands: float = 1) -> Array:
    """The gaps (C, *batch) [m] that a step is to close: all, or where many contacts rest, what goes beyond the band.

    resting: (C, *batch) bool.  bands: so many gap bands may be left.

    Many contacts have more to ask for than ways to move: what each asks for by itself would contradict the others.
    """
    band = jnp.where(resting.sum(0) > SEVERAL, bands * model.gap_band, 0)
    return gap - jnp.clip(gap, -band, band)
