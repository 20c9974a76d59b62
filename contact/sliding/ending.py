"""The end of an impact, the only difference between the laws of restitution."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...engine.algebra.vec3 import Scalar


class Ending(NamedTuple):
    """The impact ends when, after compression, a watched quantity has risen to a target.

    watched: (u_z, p_z, W) -> the quantity, one of the three: normal velocity, normal impulse, and work of the normal
        impulse since it was least, at the end of a compression.
    target: (e, u_0, p_c, W_c) -> its value at the end; u_0 < 0 the normal velocity of approach, p_c the impulse at the
        last end of a compression, W_c <= 0 the least work.
    distance: (missing, u_z, rate) -> further impulse p_z until the quantity has risen by `missing` >= 0, while u_z
        changes on a straight line with slope `rate` in p_z; negative if it never does.
    """

    watched: Callable[[Scalar, Scalar, Scalar], Scalar]
    target: Callable[[Scalar, Scalar, Scalar, Scalar], Scalar]
    distance: Callable[[Scalar, Scalar, Scalar], Scalar]
