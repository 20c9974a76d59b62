"""The models of resting contact, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from ...engine.model import Model
from .each_alone import each_alone
from .microcollisions import microcollisions
from .penalty import penalty
from .solve import Rest, solve

Speed = Callable[[Model, Array | float], Array]


@dataclass(frozen=True)
class Resting:
    """A model of resting contact.

    carry: (model, contacts, rows, v, v_free, h, midway, grips) -> Rest.
    slow: (model, h) -> the speed of approach below which a contact rests and does not bounce.
    holds: whether dry friction and motors can hold joints.
    """

    carry: Callable[..., Rest]
    slow: Speed
    holds: bool = False


def _rest_speed(model: Model, h: Array | float) -> Array:
    return model.rest_speed


def _few_steps_of_fall(model: Model, h: Array | float) -> Array:
    """Return a few times the speed g h, at which bodies land after each step of flight between micro-collisions."""
    return jnp.maximum(model.rest_speed, 3 * h * jnp.linalg.norm(model.gravity, axis=-1))


def no_impacts(model: Model, h: Array | float) -> Array:
    """Return an infinite speed: springs stop every approach, and there are no impacts."""
    return jnp.full_like(model.rest_speed, jnp.inf)


RESTING: dict[str, Resting] = {
    "solve": Resting(solve, _rest_speed, holds=True),
    "microcollisions": Resting(microcollisions, _few_steps_of_fall),
    "penalty": Resting(each_alone(penalty), no_impacts),
}


def resting_named(name: str) -> Resting:
    """Return the model of resting contact of this name, or raise an error that lists the names."""
    if name not in RESTING:
        raise ValueError(f"resting is {name!r}; it must be one of {', '.join(RESTING)}")
    return RESTING[name]
