"""Growth: a world with more spare bodies is built beside the running one, which then changes over.

Spare bodies come after all others (`pool.py`), so the links, coordinates, shapes and trees of the smaller world are
the first of the larger one's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.state import State
from .asleep import Asleep
from .parts import Parts
from .standing import WorldState


def beginning(old: Any, new: Any) -> Any:
    """Array `new`, whose first rows are those of `old`."""
    made = np.array(new)
    made[: len(old)] = old
    return made


def larger(old_world: WorldState, parts: Parts) -> WorldState:
    """The state of a smaller world in a larger one, whose additional bodies wait in the pool."""
    start, old, asleep = parts.start, old_world.state, old_world.asleep
    state = State(beginning(old.q, start.state.q), beginning(old.v, start.state.v), old.t)
    sleeps = Asleep(
        parts.model.topology,
        beginning(asleep.island, start.asleep.island),
        beginning(asleep.motors, start.asleep.motors),
    )
    return WorldState(parts.model, parts.spares, state, sleeps)
