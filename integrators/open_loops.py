"""A warning for runs that begin with loops that are not closed."""

from __future__ import annotations

import warnings

import numpy as np

from ..engine.loops.forward import exact as exactly_held
from ..engine.loops.projection import OPEN, loop_errors
from ..engine.model import Model
from ..engine.results import SimulationWarning
from ..engine.state import State


def warn_of_open_loops(model: Model, state: State, stacklevel: int) -> None:
    """Warn if the loops of a single scene are open at the start of a run. It must be called outside of jit."""
    if not (exactly_held(model.topology) and model.topology.hold == "projection"):
        return
    error = np.abs(np.asarray(loop_errors.straight(model, state.q, state.v, state.t)[0]))
    if (error > OPEN[error.dtype.itemsize]).any():
        warnings.warn(
            f"the loops of the initial state are open by {error.max():.3g} m or rad: the first step closes them at one "
            "blow, or not at all; after a change of lengths or frames start from carom.close_loops(model, state), and "
            "look at carom.closed(model, q, v, t).error",
            SimulationWarning,
            stacklevel=stacklevel + 1,
        )
