"""A model's parameters as one array: passing forty arrays to a program takes longer than many programs run."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import Array

from .model import Model
from .topology import Topology

T = TypeVar("T")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Packed:
    """A packed model.  numbers: (N,) or (lanes, N), all parameters.  shapes: (name, shape) of each, of one lane."""

    numbers: Array
    topology: Topology = field(metadata={"static": True})
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = field(metadata={"static": True})

    @property
    def model(self) -> Model:
        """The model of one lane."""
        parameters, at = {}, 0
        for name, shape in self.shapes:
            size = math.prod(shape)
            parameters[name] = self.numbers[at : at + size].reshape(shape)
            at += size
        return Model(self.topology, **parameters)


def once_a_model(function: Callable[[Model], T]) -> Callable[[Model], T]:
    """Cache function(model) for each model, which never changes."""
    kept: dict[int, tuple[weakref.ref[Model], T]] = {}

    @functools.wraps(function)
    def call(model: Model) -> T:
        key = id(model)
        entry = kept.get(key)
        if entry is not None and entry[0]() is model:
            return entry[1]
        made = function(model)
        kept[key] = weakref.ref(model, lambda _: kept.pop(key, None)), made
        return made

    return call


@once_a_model
def is_traced(model: Model) -> bool:
    """Return whether some parameter is a number of a program that is being traced."""
    return any(isinstance(x, jax.core.Tracer) for x in model.parameters.values())


@once_a_model
def lanes_of(model: Model) -> tuple[int, ...]:
    """The lane axes that its parameters have."""
    return np.broadcast_shapes(*(_lanes(name, x) for name, x in model.parameters.items()))


@once_a_model
def pack_model(model: Model) -> Packed | Model:
    """Pack a model; return the model itself if it is traced, of several types or lane axes, or of many processes."""
    parameters = model.parameters
    if is_traced(model) or len(lanes_of(model)) > 1 or len({x.dtype for x in parameters.values()}) > 1:
        return model
    if not all(getattr(x, "is_fully_addressable", True) for x in parameters.values()):
        return model
    shapes = tuple((name, x.shape[len(_lanes(name, x)) :]) for name, x in parameters.items())
    flat = [np.asarray(x).reshape(*_lanes(name, x), -1) for name, x in parameters.items()]
    wide = [np.broadcast_to(x, (*lanes_of(model), x.shape[-1])) for x in flat]
    with jax.ensure_compile_time_eval():  # an array, inside a program that is being traced too
        return Packed(jnp.asarray(np.concatenate(wide, -1)), model.topology, shapes)


def unpack_model(given: Packed | T) -> Model | T:
    """Return the model, of one lane, of a packed one; return any other argument as it is."""
    return given.model if isinstance(given, Packed) else given


def _lanes(name: str, x: Array) -> tuple[int, ...]:
    return x.shape[: x.ndim - Model.base_ndim(name)]
