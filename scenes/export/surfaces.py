"""Materials of surfaces in an exported world, and velocities of statics: `scenes/live/changes.py` as programs."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...contact.laws.table import law_named
from ...engine.parameters import COMBINED, pair_numbers
from ..compiling.check import MOST
from ..live.changes import surface_twist
from .changes import ChangePrograms
from .named import things
from .programs import Change, World

RANGE = {"friction": (0, np.inf), "restitution": (0, 1), "tangential_restitution": (-1, 1)}


class Surfaces:
    """Programs of one world, like those of `programs.py`."""

    def __init__(self, changes: ChangePrograms) -> None:
        self.changes, self.live = changes, changes.live
        self.topology, self.owner = changes.topology, changes.owner

    def set_material(self, w: World, body: Array, *arguments: Array) -> Change:
        """`Live.set_material`.  arguments: numbers (1,) in the order of COMBINED, each with whether it is given."""
        model, mine = self.changes.model(w), jnp.asarray(self.owner) == body
        new: dict[str, Array] = {}
        for name, (x, given) in _name_arguments(arguments).items():
            numbers = jnp.where(mine & given, x, getattr(model, name))
            old = getattr(model, f"pair_{name}")
            new |= {
                name: numbers,
                f"pair_{name}": jnp.where(given, pair_numbers(name, numbers, old, self.topology), old),
            }
        return self.changes.apply(w, new, mine.any() & _in_range(arguments) & self._read(new), {})

    def set_pair_material(self, w: World, a: Array, b: Array, *arguments: Array) -> Change:
        """`Live.set_pair_material`."""
        model, mine = self.changes.model(w), self.changes.between(a, b)
        new = {f"pair_{n}": jnp.where(mine & given, x, getattr(model, f"pair_{n}"))
               for n, (x, given) in _name_arguments(arguments).items()}  # fmt: skip
        return self.changes.apply(w, new, mine.any() & _in_range(arguments) & self._read(new), {})

    def _read(self, new: dict[str, Array]) -> Array | bool:
        """Return whether the world's law reads these numbers."""
        rules = self.changes.programs.rules
        reads = law_named(rules.law).tangential and rules.impacts == "sequential"
        return reads or (new["pair_tangential_restitution"] == 0).all()

    def set_surface_velocity(self, w: World, static: Array, *arguments: Array) -> Change:
        """`Live.set_surface_velocity`.  arguments: linear and angular (3,), each followed by whether it is given."""
        model, origins, names = self.changes.model(w), self.live._parts.origins, things(self.live)
        known = np.array([name in origins for name in names])
        at = np.array([origins.get(name, (0, 0, 0)) for name in names], float)
        k = jnp.clip(static, 0, len(names) - 1)
        linear, angular = (
            jnp.where(given != 0, x, 0) for x, given in zip(arguments[::2], arguments[1::2], strict=True)
        )
        twist = surface_twist(model.shape_position, linear, angular, jnp.asarray(at, w["q"].dtype)[k])
        twist = jnp.stack(jnp.broadcast_arrays(*twist), -1)
        mine = jnp.asarray(self.owner) == static
        valid = (k == static) & jnp.asarray(known)[k] & _is_bounded(linear) & _is_bounded(angular)
        return self.changes.apply(w, {"shape_twist": jnp.where(mine[:, None], twist, model.shape_twist)}, valid, {})


def _name_arguments(arguments: Sequence[Array]) -> dict[str, tuple[Array, Array]]:
    return {name: (x[0], given != 0) for name, x, given in zip(COMBINED, arguments[::2], arguments[1::2], strict=True)}


def _in_range(arguments: Sequence[Array]) -> Array:
    """Return whether the given numbers are in their ranges, () bool."""
    in_range = jnp.asarray(True)
    for name, (x, given) in _name_arguments(arguments).items():
        in_range &= ~given | ((x >= RANGE[name][0]) & (x <= RANGE[name][1]) & jnp.isfinite(x))
    return in_range


def _is_bounded(x: Array) -> Array:
    return (abs(x) <= MOST).all()
