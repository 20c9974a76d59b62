"""What surfaces are made of in an exported world, and how those of statics go: `scenes/live/changes.py` as programs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...contact.laws.table import law_named
from ...engine.parameters import COMBINED, pair_numbers
from ..compiling.check import MOST
from ..live.changes import surface_twist
from .changes import Changes
from .named import things
from .programs import Change, World

RANGE = {"friction": (0, np.inf), "restitution": (0, 1), "tangential_restitution": (-1, 1)}


class Surfaces:
    """Programs of one world, as those of `programs.py`."""

    def __init__(self, changes: Changes) -> None:
        self.changes, self.live = changes, changes.live
        self.topology, self.owner = changes.topology, changes.owner

    def set_material(self, w: World, body: Array, *told: Array) -> Change:
        """`Live.set_material`.  told: numbers (1,), in the order of COMBINED, behind each whether it is given."""
        model, mine = self.changes.model(w), jnp.asarray(self.owner) == body
        new: dict[str, Array] = {}
        for name, (x, given) in _named(told).items():
            numbers = jnp.where(mine & given, x, getattr(model, name))
            old = getattr(model, f"pair_{name}")
            new |= {
                name: numbers,
                f"pair_{name}": jnp.where(given, pair_numbers(name, numbers, old, self.topology), old),
            }
        return self.changes.used(w, new, mine.any() & _fine(told) & self._read(new), {})

    def set_pair_material(self, w: World, a: Array, b: Array, *told: Array) -> Change:
        """`Live.set_pair_material`."""
        model, mine = self.changes.model(w), self.changes.between(a, b)
        new = {f"pair_{n}": jnp.where(mine & given, x, getattr(model, f"pair_{n}"))
               for n, (x, given) in _named(told).items()}  # fmt: skip
        return self.changes.used(w, new, mine.any() & _fine(told) & self._read(new), {})

    def _read(self, new: dict[str, Array]) -> Any:
        """Whether the world's law reads these numbers."""
        rules = self.changes.programs.rules
        reads = law_named(rules.law).tangential and rules.impacts == "sequential"
        return reads or (new["pair_tangential_restitution"] == 0).all()

    def set_surface_velocity(self, w: World, static: Array, *told: Array) -> Change:
        """`Live.set_surface_velocity`.  told: linear and angular (3,), behind each whether it is given."""
        model, origins, names = self.changes.model(w), self.live._parts.origins, things(self.live)
        known = np.array([name in origins for name in names])
        at = np.array([origins.get(name, (0, 0, 0)) for name in names], float)
        k = jnp.clip(static, 0, len(names) - 1)
        linear, angular = (jnp.where(given != 0, x, 0) for x, given in zip(told[::2], told[1::2], strict=True))
        twist = surface_twist(model.shape_position, linear, angular, jnp.asarray(at, w["q"].dtype)[k])
        twist = jnp.stack(jnp.broadcast_arrays(*twist), -1)
        mine = jnp.asarray(self.owner) == static
        asked = (k == static) & jnp.asarray(known)[k] & _bounded(linear) & _bounded(angular)
        return self.changes.used(w, {"shape_twist": jnp.where(mine[:, None], twist, model.shape_twist)}, asked, {})


def _named(told: Any) -> dict[str, tuple[Array, Array]]:
    return {name: (x[0], given != 0) for name, x, given in zip(COMBINED, told[::2], told[1::2], strict=True)}


def _fine(told: Any) -> Array:
    """() bool, whether what is given may be."""
    fine = jnp.asarray(True)
    for name, (x, given) in _named(told).items():
        fine &= ~given | ((x >= RANGE[name][0]) & (x <= RANGE[name][1]) & jnp.isfinite(x))
    return fine


def _bounded(x: Array) -> Array:
    return (abs(x) <= MOST).all()
