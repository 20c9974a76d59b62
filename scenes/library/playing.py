"""Play scenes of the library and measure their facts. Imports that need jax are inside: the registry is quick."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...collision.poses import Array, rotation_matrix
from ..spec import SceneSpec
from .facts import ChainPlay, Entry, Fact, Play
from .playing_chains import PlayedChain, play_chain

if TYPE_CHECKING:
    from ...integrators.rollout import Rollout


@dataclass(frozen=True)
class Played:
    """A played scene, F frames, for facts: numpy arrays, bodies and links by name."""

    spec: SceneSpec
    model: Any
    state: Any
    result: Rollout

    @cached_property
    def t(self) -> Array:
        """Times (F,) [s]."""
        return np.asarray(self.result.t)

    @cached_property
    def q(self) -> Array:
        """Coordinates (F, nq)."""
        return np.asarray(self.result.q)

    @cached_property
    def v(self) -> Array:
        """Velocities (F, nv)."""
        return np.asarray(self.result.v)

    # -- of one body or link ------------------------------------------------------------------------

    def coordinates(self, name: str) -> Array:
        """Joint coordinates of a link (F, width)."""
        k, start = self.model.topology.names.index(name), self.model.topology.q_start
        return self.q[:, start[k] : start[k + 1]]

    def rates(self, name: str) -> Array:
        """Joint velocities of a link (F, width)."""
        k, start = self.model.topology.names.index(name), self.model.topology.v_start
        return self.v[:, start[k] : start[k + 1]]

    def joint(self, name: str) -> Array:
        """The coordinate of a joint with one degree of freedom (F,) [rad or m]."""
        return self.coordinates(name)[:, 0]

    def rate(self, name: str) -> Array:
        """The velocity of a joint with one degree of freedom (F,) [rad/s or m/s]."""
        return self.rates(name)[:, 0]

    def position(self, name: str) -> Array:
        """Origin of a free body in the world (F, 3) [m]."""
        return self.coordinates(name)[:, :3]

    def axes(self, name: str) -> Array:
        """Axes of a free body in the world (F, 3, 3), as columns."""
        return np.array([rotation_matrix(x) for x in self.coordinates(name)[:, 3:]])

    def velocity(self, name: str) -> Array:
        """Velocity of a free body's origin (F, 3), world axes [m/s]."""
        return self.rates(name)[:, 3:]

    def spin(self, name: str) -> Array:
        """Angular velocity of a free body (F, 3), world axes [rad/s]."""
        return self.rates(name)[:, :3]

    @cached_property
    def positions(self) -> Array:
        """Origins of all bodies (F, n, 3), if all are free [m]."""
        return self.q.reshape(len(self.t), -1, 7)[:, :, :3]

    @cached_property
    def velocities(self) -> Array:
        """Velocities of their origins (F, n, 3) [m/s]."""
        return self.v.reshape(len(self.t), -1, 6)[:, :, 3:]

    # -- of the whole scene ---------------------------------------------------------------------------

    @cached_property
    def energies(self) -> tuple[Array, Array]:
        """Kinetic and potential energy, (F,) each [J]."""
        import jax

        from ...engine.loops.energy import energy
        from ...engine.state import State

        energies = jax.vmap(lambda q, v, t: energy(self.model, State(q, v, t)))(
            self.result.q, self.result.v, self.result.t
        )
        return np.asarray(energies.kinetic), np.asarray(energies.potential)

    @cached_property
    def kinetic(self) -> Array:
        """Kinetic energy (F,) [J]."""
        return self.energies[0]

    @cached_property
    def energy(self) -> Array:
        """Kinetic plus potential energy (F,) [J]."""
        return self.energies[0] + self.energies[1]

    @property
    def energy_drift(self) -> float:
        """Largest change since the first frame, in parts of the largest kinetic energy of all frames [J/J]."""
        return float(np.abs(self.energy - self.energy[0]).max() / self.kinetic.max())

    @property
    def energy_gain(self) -> float:
        """Largest rise above an earlier frame, in parts of the largest kinetic energy of all frames [J/J]."""
        return float((self.energy - np.minimum.accumulate(self.energy)).max() / self.kinetic.max())

    @cached_property
    def momenta(self) -> tuple[Array, Array]:
        """Linear and angular momentum about the world's origin, (F, 3) each [kg m/s, kg m^2/s]."""
        import jax

        from ...engine.dynamics.energy import momentum
        from ...engine.state import State

        momenta = jax.vmap(lambda q, v, t: momentum(self.model, State(q, v, t)))(
            self.result.q, self.result.v, self.result.t
        )
        return np.asarray(momenta.linear), np.asarray(momenta.angular)

    # -- of its impacts ---------------------------------------------------------------------------------

    @property
    def impacts(self) -> int:
        """Number of impacts, logged or not."""
        return int(self.result.events.count)

    def event(self, name: str) -> Array:
        """A field of the event log, without its empty rows."""
        column = np.asarray(getattr(self.result.events, name))
        return column[: min(self.impacts, len(column))]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a fact; found: NaN if it could not be measured."""

    fact: Fact
    found: float

    @property
    def holds(self) -> bool:
        return abs(self.found - self.fact.expected) <= self.fact.tolerance


# a fact of every play, besides its own
WELL = Fact("result code, 0 if all is well", 0, 0, lambda p: p.result.code)
ENDED = Fact("result code, 0 if nothing grave happened", 0, 0, lambda p: _grave(int(p.result.code)))


def _grave(code: int) -> int:
    from ...engine.results import Code

    return code if Code(code).grave else 0


def play(entry: Entry, way: Play | ChainPlay, dtype: DTypeLike | None = None) -> Any:
    """Build, compile and run a scene; its code says whether the run is well. Returns a Played, or a PlayedChain."""
    if isinstance(way, ChainPlay):
        return play_chain(entry, way, dtype)
    from ...integrators.rollout import rollout
    from ..compile import compile_scene

    spec: Any = entry.build(**way.parameters)
    model, state = compile_scene(spec, dtype)
    return Played(spec, model, state, rollout(model, state, **way.keywords, throw=False))


class Checked(NamedTuple):
    """A play, the outcomes of its facts and of WELL, and the run's problems in words, if any."""

    play: Play | ChainPlay
    outcomes: list[Outcome]
    failure: str


def outcomes(entry: Entry, dtype: DTypeLike | None = None) -> Iterator[Checked]:
    """Play a scene in all its ways, one after another."""
    from ...engine.results import MESSAGES, OK, Code

    for way in entry.plays:
        played = play(entry, way, dtype)
        code = int(played.result.code)
        code = _grave(code) if way.rough else code
        measured = [Outcome(fact, _measure(fact, played)) for fact in (*way.facts, ENDED if way.rough else WELL)]
        yield Checked(way, measured, "" if code == OK else MESSAGES[Code(code)])


def _measure(fact: Fact, played: Played | PlayedChain) -> float:
    try:
        return float(fact.measure(played))
    except (IndexError, ValueError):  # an impact that did not occur
        return math.nan
