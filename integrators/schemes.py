"""The motion schemes by name."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from ..engine.dynamics.energy import kinetic_of_trees
from ..engine.loops.forward import exact as exactly_held
from ..engine.loops.projection import project_and_check
from ..engine.model import Model
from ..engine.results import LOOPS_OPEN, OK
from ..engine.state import State
from .motion.exact import exact
from .motion.forces import Step
from .motion.lie_midpoint import lie_midpoint
from .motion.rk4 import rk4
from .motion.semi_implicit import semi_implicit

SCHEMES = {"exact": exact, "rk4": rk4, "lie_midpoint": lie_midpoint, "semi_implicit": semi_implicit}
DIVIDES = frozenset({"exact"})  # divides steps that are too long to be stable
FIRST_ORDER = frozenset({"semi_implicit"})
FOURTH_ORDER = frozenset({"exact", "rk4"})  # for trees; forces that change within a step have their true mean


def scheme_named(name: str):
    """Return the scheme of this name, or raise an error that lists the names."""
    if name not in SCHEMES:
        raise ValueError(f"scheme {name!r} is unknown; it must be one of {', '.join(SCHEMES)}")
    return functools.partial(_step_state, name)


class Closing(NamedTuple):
    """What it took to close the loops after a step.

    drift: (*batch) the velocity that closed them, relative to that of their tree, in the metric of the masses.
    code: (*batch) result code: LOOPS_OPEN if they cannot be closed.
    """

    drift: Array
    code: Array


def step_and_close(
    name: str, model: Model, state: State, h: Step, *acting: Array | None
) -> tuple[State, Closing | None]:
    """Take one step of the scheme of this name, and close loops to rounding if they are held by projection.

    Returns the state and what closing them took; None if nothing closes them.
    """
    after = SCHEMES[name](model, state, h, *acting)
    if not (exactly_held(model.topology) and model.topology.hold == "projection"):
        return after, None
    q, v, is_open = project_and_check(model, after.q, after.v, after.t)
    code = jnp.where(is_open, LOOPS_OPEN, OK).astype(jnp.int32)
    return State(q, v, after.t), stop_gradient(Closing(_loop_drift(model, q, v - after.v, v), code))


def bend(name: str) -> float:
    """Return the multiple of a h^2 / 2 by which accelerations a move the end of a step of length h.

    Semi-implicit Euler moves with the velocity at the end, by a h^2. The search for times of impact depends on it.
    """
    return 2.0 if name in FIRST_ORDER else 1.0


def _step_state(name: str, *given: Any) -> State:
    return step_and_close(name, *given)[0]


def _loop_drift(model: Model, q: Array, dv: Array, v: Array) -> Array:
    """Return the square root of the ratio of the kinetic energies of dv and v, for the tree with the largest ratio."""
    taken, there = (kinetic_of_trees(model, q, x) for x in (dv, v))
    ratio = jnp.where(taken > 0, taken / jnp.maximum(there, jnp.finfo(q.dtype).tiny), 0)
    return jnp.where((jnp.abs(dv) > model.rest_speed[..., None]).any(-1), jnp.sqrt(ratio.max(0)), 0)
