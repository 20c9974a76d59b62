"""A warning for runs whose steps are short because damping or motors stop light links at once."""

from __future__ import annotations

import warnings

import numpy as np

from ..engine.dynamics.crba import crba
from ..engine.model import Model
from ..engine.results import SimulationWarning
from ..engine.state import State
from .motion.softened import finite_kd
from .resolved import DECAY
from .schemes import FIRST_ORDER

MANY = 20  # ticks in a step of max_dt


def warn_of_stiff_joints(
    model: Model, state: State, scheme: str, steps: float, max_dt: float, ticks: int, stacklevel: int
) -> None:
    """Warn if a run of a single scene took many ticks because its steps resolve a fast decay (`resolved.py`).

    steps: how many of length max_dt [s] it would have taken. It must be called outside of jit.
    """
    if ticks < MANY * steps or scheme in FIRST_ORDER:
        return
    M, topology = np.asarray(crba(model, state.q), np.float64), model.topology
    rate = np.asarray(model.damping + finite_kd(model), np.float64) * np.diag(np.linalg.pinv(M))
    dof = int(rate.argmax())
    if rate[dof] * max_dt < MANY * DECAY:
        return
    link = topology.names[int(np.searchsorted(topology.v_start, dof, "right")) - 1]
    warnings.warn(
        f"{ticks} ticks, {ticks / steps:.0f} for each step of max_dt: steps resolve how fast damping or motor.kd stops "
        f'link "{link}" ({1 / rate[dof]:.2g} s). scheme="semi_implicit" needs no such steps, nor does a joint with the '
        "armature of its motor, or with a smaller kd",
        SimulationWarning,
        stacklevel=stacklevel + 1,
    )
