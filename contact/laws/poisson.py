"""Poisson's restitution: the normal impulse of restitution is e times that of compression.

This kinetic law ends the impact at p_z = (1 + e) p_c, p_c the normal impulse when compression ends (the last one if
there are several). All of 100 000 sampled impacts lost energy, but Stronge (1990) shows that they need not in
principle: energy returned by the normal impulse is not bounded by e^2 when slip stops or reverses in between.
"""

from __future__ import annotations

from ..sliding.ending import Ending
from .law import integrated_law

ENDING = Ending(
    watched=lambda u_z, p_z, W: p_z,
    target=lambda e, u_0, p_c, W_c: (1 + e) * p_c,
    distance=lambda missing, u_z, rate: missing,
)

POISSON = integrated_law("poisson", ENDING, "normal impulse of restitution = e times that of compression")
