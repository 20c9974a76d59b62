"""State: exactly the values that a rollback must restore, nothing derived."""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jax import Array

from .display import Row, display_as, lanes_text, numbers
from .shaped import Float


def _describe(state: State) -> tuple[str, list[Row]]:
    widths: list[tuple[int | str, ...]] = [getattr(x, "shape", ("?",))[-1:] or ("?",) for x in (state.q, state.v)]
    head = f"{widths[0][0]} coordinates, {widths[1][0]} velocities{lanes_text(getattr(state.t, 'shape', ()))}"
    return head, [("t [s]", numbers(state.t)), ("q", numbers(state.q)), ("v", numbers(state.v))]


@display_as(_describe)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """Coordinates, velocities and clock of one scene, or of a batch with one leading axis.

    q: joint coordinates in link order; a free body's are its position, then its orientation [m, rad, unit quaternions
        w x y z].
    v: joint velocities in link order; a free body's are its angular velocity, then the linear one of its origin, world
        axes [rad/s, m/s].
    t: time [s].
    """

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*batch nv"]
    t: Float[Array, "*batch"]
