"""Measures of a sweep: quantities of each lane by name, of all lanes of a shard at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ...engine.algebra.vec3 import Vec3
from ...engine.dynamics.kinematics import propagate_poses, propagate_velocities
from ...engine.forest import Forest
from ...engine.loops.energy import energy
from ...engine.model import Model
from ...engine.native.surface import lanewise
from ...engine.results import EVENTS_FULL
from ...engine.state import State
from ...integrators.rollout import Rollout
from ..formats.toml_plain import suggest

Array = np.ndarray
Function = Callable[[Model, Rollout], ArrayLike]  # -> (lanes, ...), each depends on its lane only
DEFAULT = ("code", "first_impact", "impacts", "energy", "loss", "overlap", "ticks", "at_rest")
POSITION = "position."
RESERVED = ("lane", "file", "allow_pickle")  # the first column; and words that numpy.savez keeps


@dataclass(frozen=True)
class ShardLanes:
    """A shard of L lanes that ran.

    model: that of the lanes.  start: their first states.  ran: their rollout.
    """

    model: Model
    start: State
    ran: Rollout

    @cached_property
    def energies(self) -> tuple[Array, Array]:
        """Energies (L,) at the start and at the end [J]."""
        first, last = (np.asarray(energy(self.model, state).total) for state in (self.start, self.ran.state))
        return first, last

    @property
    def first_impact(self) -> Array:
        """Time of the first impact (L,) [s]; NaN: none."""
        times, count = np.asarray(self.ran.events.t), np.asarray(self.ran.events.count)
        return np.where(count > 0, times[:, 0], np.nan) if times.shape[1] else np.full(len(times), np.nan)

    @property
    def code(self) -> Array:
        """Each lane's `carom.Code` (L,), without EVENTS_FULL, since a sweep reads only the log's first row."""
        code = np.asarray(self.ran.code)
        return np.where(code == EVENTS_FULL, 0, code)

    @property
    def at_rest(self) -> Array:
        """Return whether no velocity at the end is above the speed below which contacts rest, (L,)."""
        fastest = np.abs(np.asarray(self.ran.state.v)).max(-1, initial=0.0)
        return fastest <= np.asarray(self.model.rest_speed)

    @property
    def max_speed(self) -> Array:
        """Speed of the fastest centre of mass (L,), in the frames that lanes reached [m/s]."""
        frames_lead = (np.swapaxes(np.asarray(x), 0, 1) for x in (self.ran.q, self.ran.v))
        speed = np.asarray(_links(self.model, *frames_lead)[3])
        return np.nanmax(speed, axis=(0, 2), initial=0.0)

    def position(self, link: int) -> Array:
        """Position of the link's origin at the end (L, 3) [m]."""
        x, y, z, _ = (np.asarray(part)[:, link] for part in _links(self.model, self.ran.state.q, self.ran.state.v))
        return np.stack([x, y, z], -1)


@lanewise
def _links(model: Model, q: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
    """x, y, z of the links' origins [m], and speeds of their centres of mass [m/s], (..., nl) each."""
    forest = Forest.of(model, q=q, v=v)
    poses = propagate_poses(forest, model, q)
    parts = []
    for group, at, x in zip(forest.groups, poses, propagate_velocities(forest, poses, v), strict=True):
        center = at.pose.R @ Vec3.of(forest.parameter(model, "com", group))
        u, p = x.V.at(center).v, at.pose.p
        parts.append((p.x, p.y, p.z, jnp.sqrt(u.dot(u))))
    return tuple(forest.join_links([part[k] for part in parts]) for k in range(4))


MEASURES: dict[str, Callable[[ShardLanes], ArrayLike]] = {
    "code": lambda lanes: lanes.code,
    "first_impact": lambda lanes: lanes.first_impact,
    "impacts": lambda lanes: lanes.ran.stats.impacts,
    "energy": lambda lanes: lanes.energies[1],
    "loss": lambda lanes: lanes.energies[0] - lanes.energies[1],
    "overlap": lambda lanes: np.asarray(lanes.ran.stats.max_penetration) + 0.0,  # and no -0
    "ticks": lambda lanes: lanes.ran.stats.ticks,
    "rollbacks": lambda lanes: lanes.ran.stats.rollbacks,
    "resting": lambda lanes: lanes.ran.stats.resting,
    "t": lambda lanes: lanes.ran.state.t,
    "q": lambda lanes: lanes.ran.state.q,
    "v": lambda lanes: lanes.ran.state.v,
    "max_speed": lambda lanes: lanes.max_speed,
    "at_rest": lambda lanes: lanes.at_rest,
}


def select_measures(
    measure: Iterable[str] | Mapping[str, Function | None], names: Iterable[str]
) -> dict[str, Function | None]:
    """Measures by their names; None: a built-in one.  names: of the scene's links."""
    given = dict(measure) if isinstance(measure, Mapping) else dict.fromkeys(measure)
    if not given:
        raise ValueError("measure is empty: name what to keep of each lane")
    known = [*MEASURES, *(POSITION + name for name in names)]
    for name, function in given.items():
        if function is not None and not callable(function):
            raise ValueError(f"measure {name!r} is {function!r}; give a function (model, rollout) -> (lanes, ...)")
        if function is None and name not in known:
            raise ValueError(f"there is no measure {name!r}: {suggest(name, known)}")
        if function is not None and (name in {*known, *RESERVED} or not re.fullmatch(r"[A-Za-z_]\w*", name)):
            raise ValueError(f"measure {name!r} must have another name: of letters and digits, and none of carom's own")
    return given


def measure_lanes(lanes: ShardLanes, measures: Mapping[str, Function | None], count: int) -> dict[str, Array]:
    """Measure the first `count` lanes, (count, ...)."""
    measured = {}
    for name, function in measures.items():
        if function is not None:
            values = np.asarray(function(lanes.model, lanes.ran))
        elif name.startswith(POSITION):
            values = lanes.position(lanes.model.topology.names.index(name.removeprefix(POSITION)))
        else:
            values = np.asarray(MEASURES[name](lanes))
        if values.shape[:1] != lanes.ran.code.shape:
            raise ValueError(
                f"measure {name!r} returned shape {values.shape}; it must have one row a lane, {lanes.ran.code.shape}"
            )
        measured[name] = values[:count]
    return measured
