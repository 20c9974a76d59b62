"""Play planar chains of the library, for `playing.py`. Imports that need jax are inside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ...collision.poses import Array
from ..chains.spec import ChainSpec
from .facts import ChainPlay, Entry

if TYPE_CHECKING:
    from ...engine.planar.model import Chain, ChainState
    from ...integrators.planar.rollout import ChainRollout


@dataclass(frozen=True)
class PlayedChain:
    """A played chain, F frames, for facts: numpy arrays."""

    spec: ChainSpec
    model: Chain
    state: ChainState
    result: ChainRollout

    @cached_property
    def x(self) -> Array:
        """Positions of the joints (F, n, 2) [m]."""
        return np.asarray(self.result.x)

    @cached_property
    def v(self) -> Array:
        """Velocities of the joints (F, n, 2) [m/s]."""
        return np.asarray(self.result.v)

    @cached_property
    def speed(self) -> Array:
        """Speeds of the joints (F, n) [m/s]."""
        return np.linalg.norm(self.v, axis=-1)

    @cached_property
    def energy(self) -> Array:
        """Kinetic plus potential energy (F,) [J]."""
        import jax.numpy as jnp

        from ...engine.planar.energy import chain_energy

        result = self.result
        frames = replace(result.state, x=result.x, v=result.v, t=result.t, stuck=result.stuck, shut=result.shut)
        return np.asarray(jnp.add(*chain_energy(self.model, frames)))

    def event(self, name: str) -> Array:
        """A field of the log of stops, without its empty rows."""
        return np.asarray(getattr(self.result.events, name))[: int(self.result.events.count)]


def play_chain(entry: Entry, way: ChainPlay, dtype: DTypeLike | None = None) -> PlayedChain:
    """Build, compile and run a chain; its code says whether the run is well."""
    from ...integrators.planar.rollout import chain_rollout
    from ..compile import compile_scene
    from ..running_chains import drive_of

    spec: Any = entry.build(**way.parameters)
    model, state = compile_scene(spec, dtype)
    keywords: dict[str, Any] = way.keywords | {"control": drive_of(way.drive, state.x.dtype)}
    return PlayedChain(spec, model, state, chain_rollout(model, state, **keywords, throw=False))
