"""Newton's restitution: the normal velocity after the impact is -e times the one before.

This kinematic law is the simplest to measure, and the only one of the three under which an impact can gain energy. If
slip reverses or stops, friction changes the normal velocity too, and u_z = e |u_0| may need more energy than there is:
Kane and Levinson's double pendulum (1985) leaves with 1.14 times its energy at e = 0.8. These impacts have the code
ENERGY_GAINED. The law agrees with Poisson's and Stronge's if slip keeps its direction or the coupling b vanishes.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Scalar
from ..sliding.ending import Ending
from .law import integrated_law


def _distance(missing: Scalar, u_z: Scalar, rate: Scalar) -> Array:
    return jnp.where(missing > 0, safe_div(missing, rate, otherwise=-1), 0)


ENDING = Ending(
    watched=lambda u_z, p_z, W: u_z,
    target=lambda e, u_0, p_c, W_c: -e * u_0,
    distance=_distance,
)

NEWTON = integrated_law(
    "newton", ENDING, "u_n after = -e u_n before; with friction an impact may gain energy (flagged)"
)
