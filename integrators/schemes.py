"""The motion schemes by name."""

from __future__ import annotations

import functools
from typing import Any

from ..engine.closures.forward import exact as exactly_held
from ..engine.closures.projection import projected
from ..engine.model import Model
from ..engine.state import State
from .motion.exact import exact
from .motion.lie_midpoint import lie_midpoint
from .motion.rk4 import rk4
from .motion.semi_implicit import semi_implicit

SCHEMES = {"exact": exact, "rk4": rk4, "lie_midpoint": lie_midpoint, "semi_implicit": semi_implicit}
FIRST_ORDER = frozenset({"semi_implicit"})


def scheme_named(name: str):
    """The scheme of this name, or an error that lists the names."""
    if name not in SCHEMES:
        raise ValueError(f"scheme {name!r} is unknown; it must be one of {', '.join(SCHEMES)}")
    return functools.partial(_closed, SCHEMES[name])


def bend(name: str) -> float:
    """How many times a h^2 / 2 accelerations a move the end of a step of length h. Semi-implicit Euler goes all the way
    at the velocity of the end: by a h^2. What looks for the step that ends where something touches must know."""
    return 2.0 if name in FIRST_ORDER else 1.0


def _closed(scheme: Any, model: Model, state: State, h: Any, *acting: Any) -> State:
    """One step, after which loops are closed to rounding, where that is how they are held."""
    after = scheme(model, state, h, *acting)
    if not (exactly_held(model.topology) and model.topology.hold == "projection"):
        return after
    q, v = projected(model, after.q, after.v, after.t)
    return State(q, v, after.t)
