"""Stronge's restitution: the normal impulse gives back e^2 of the work it took. The default.

Energetic (Stronge 1990; Mirtich 1996): with W the integral of u_z dp_z and W_c < 0 its least value, at the end of a
compression, the impact ends at W - W_c = -e^2 W_c. Friction always takes work, so the impact loses at least
(1 - e^2) |W_c| for any K, mu and e <= 1: it never gains energy. `ill_conditioned` ensures this despite rounding.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.safe import safe_div, safe_sqrt
from ...engine.algebra.vec3 import Scalar
from ..sliding.ending import Ending
from .law import integrated_law


def _distance(missing: Scalar, u_z: Scalar, rate: Scalar) -> Array:
    """Return the smaller positive root d of missing = u_z d + rate d^2 / 2, or -1 if there is none."""
    square = u_z * u_z + 2 * rate * missing
    some, reached = missing > 0, square >= 0
    root = safe_sqrt(square)
    whole = u_z + root
    possible = some & reached & (whole > 0)
    return safe_div(2 * missing, whole, possible, jnp.where(some, -1, 0))


ENDING = Ending(
    watched=lambda u_z, p_z, W: W,
    target=lambda e, u_0, p_c, W_c: -e * e * W_c,
    distance=_distance,
)

STRONGE = integrated_law(
    "stronge", ENDING, "the normal impulse gives back e^2 of the work it took; never gains energy", loses=True
)
