"""Quotients and square roots that are not always there: no NaN where they are not, also in derivatives.

`jnp.where(y > 0, x / y, 0)` is 0 for y = 0, but its reverse derivative is NaN, 0 times an infinite one: y itself must
be replaced before the division.
"""

import jax.numpy as jnp
from jax import Array

from .vec3 import Scalar


def safe_div(x: Scalar, y: Scalar, where: Scalar | None = None, otherwise: Scalar = 0) -> Array:
    """Return x / y where `where` holds (default: y > 0), else `otherwise`; there y may be anything."""
    defined = y > 0 if where is None else where
    return jnp.where(defined, x / jnp.where(defined, y, 1), otherwise)


def safe_sqrt(x: Scalar, where: Scalar | None = None, otherwise: Scalar = 0) -> Array:
    """Return the square root of x where `where` holds (default: unless x <= 0: NaN stays NaN), else `otherwise`."""
    defined = jnp.logical_not(x <= 0) if where is None else where
    return jnp.where(defined, jnp.sqrt(jnp.where(defined, x, 1)), otherwise)
