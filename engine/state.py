"""State: exactly what a rollback must restore, nothing derived."""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jax import Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """Coordinates, velocities and clock of one scene, or of a batch with one leading axis.

    q: (..., nq) joint coordinates in link order [m, rad, unit quaternions w x y z].
    v: (..., nv) joint velocities in link order [m/s, rad/s].
    t: (...)     time [s].
    """

    q: Array
    v: Array
    t: Array
