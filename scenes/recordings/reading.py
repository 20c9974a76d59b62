"""Derived quantities of a recording: energies at the frames, names and friction at impacts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..owners import shape_owners
from .recording import Recording

if TYPE_CHECKING:
    import jax

    from ...engine.model import Model

Array = np.ndarray
LIMIT = "limit"  # the name of the other body at a joint's limit


class ImpactTable(NamedTuple):
    """The impacts of all lanes, lane by lane in their order, N rows.

    lane: (N,).  t: (N,) [s].  a, b: (N,) names of the bodies, a static last, else in alphabetical order; at a
    joint's limit its link and "limit".  point: (N, 3) [m].
    p_n, p_t: (N,) normal and tangential impulse, p_t its length [N s].  u_n, u_t: (N, 2) normal velocity and slip
    speed before and after [m/s].  kinetic: (N, 2) energy of the scene before and after [J].  friction: (N,) mu.
    """

    lane: Array
    t: Array
    a: Array
    b: Array
    point: Array
    p_n: Array
    p_t: Array
    u_n: Array
    u_t: Array
    kinetic: Array
    friction: Array

    @property
    def pairs(self) -> Array:
        """Both names (N,), as "ball - plane"."""
        return self.a + " - " + self.b

    def of(self, lane: int) -> ImpactTable:
        """The impacts of one lane."""
        return ImpactTable(*(x[self.lane == lane] for x in self))


class Reading:
    """A recording, always with an axis of lanes (L = 1 for a single run), in double precision.

    t: (L, F) [s].  q: (L, F, nq).  v: (L, F, nv): NaN in frames that a lane did not reach.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        single = recording.lanes is None
        self.t, self.q, self.v = (
            np.asarray(x[None] if single else x, float) for x in (recording.t, recording.q, recording.v)
        )

    @property
    def lanes(self) -> int:
        return len(self.t)

    @cached_property
    def model(self) -> Model:
        """The scene's model with the varied parameters; its numbers are those of the run, in double precision."""
        import jax
        import jax.numpy as jnp

        from ..compile import compile_scene

        with jax.enable_x64(True):
            model, _ = compile_scene(self.recording.scene, self.recording.q.dtype, overlaps="ignore")
            model = model.replace(**{name: jnp.asarray(x) for name, x in self.recording.varied.items()})
            return jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), model)

    def evaluate(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Compute function(model, *arguments), with arrays (L, F, ...) in and out, in double precision."""
        import jax

        # frames are the first axis, so that each lane's parameters go with its frames
        swap = lambda x: np.swapaxes(np.asarray(x), 0, 1)  # noqa: E731
        with jax.enable_x64(True):
            return jax.tree.map(swap, function(self.model, *(jax.tree.map(swap, x) for x in arguments)))

    def centers(self, q: Array) -> Array:
        """Centres of mass of the links (L, F, links, 3) at coordinates (L, F, nq), in the world [m]."""
        from ...engine.dynamics.kinematics import fk

        def of(model: Model, q: jax.Array) -> jax.Array:
            poses = fk(model, q)
            return poses.position + (poses.rotation @ model.com[..., None])[..., 0]

        return self.evaluate(of, q)

    @cached_property
    def energies(self) -> tuple[Array, Array]:
        """Kinetic and potential energy at the frames, (L, F) each [J]."""
        from ...engine.loops.energy import energy
        from ...engine.state import State

        energies = self.evaluate(energy, State(self.q, self.v, self.t))  # type: ignore[arg-type]
        return energies.kinetic, energies.potential

    @cached_property
    def ledger(self) -> EnergyLedger:
        kinetic, potential = self.energies
        return EnergyLedger(kinetic, potential, self._impact_losses(kinetic + potential))

    def _impact_losses(self, total: Array) -> Array:
        """Energy lost in impacts until each frame (L, F) [J].

        A frame at the very instant of an impact is from before or after it: the one that balances better.
        """
        lost = np.zeros_like(total)
        for lane in range(self.lanes):
            mine = self.impacts.of(lane)
            sums = np.concatenate([[0.0], np.cumsum(mine.kinetic[:, 0] - mine.kinetic[:, 1])])
            before, after = (sums[np.searchsorted(mine.t, self.t[lane], side)] for side in ("left", "right"))
            balance = total[lane, 0] - total[lane]
            lost[lane] = np.where(np.abs(balance - before) < np.abs(balance - after), before, after)
        return lost

    @cached_property
    def impacts(self) -> ImpactTable:
        """All logged impacts, see `ImpactTable`."""
        events = self.recording.events
        single = self.recording.lanes is None
        column = {
            name: np.asarray(getattr(events, name))[None] if single else np.asarray(getattr(events, name))
            for name in ("t", "pair", "bodies", "point", "u_before", "u_after", "impulse", "energy_before",
                         "energy_after", "count")
        }  # fmt: skip
        real = np.arange(column["t"].shape[1]) < column["count"][:, None]
        lane = np.nonzero(real)[0]
        row = {name: x[real] for name, x in column.items() if name != "count"}
        names = np.array([self._names(pair, link) for pair, link in zip(row["pair"], row["bodies"][:, 0], strict=True)])
        names = names.reshape(-1, 2).astype(object)
        p, u = row["impulse"].astype(float), np.stack([row["u_before"], row["u_after"]], 1).astype(float)
        kinetic = np.stack([row["energy_before"], row["energy_after"]], 1).astype(float)
        return ImpactTable(
            lane, row["t"].astype(float), names[:, 0], names[:, 1], row["point"].astype(float), p[:, 2],
            np.hypot(p[:, 0], p[:, 1]), u[:, :, 2], np.hypot(u[:, :, 0], u[:, :, 1]), kinetic,
            self._friction(lane, row["pair"]),
        )  # fmt: skip

    def _names(self, pair: int, link: int) -> tuple[str, str]:
        if pair < 0:
            return self.model.topology.names[link], LIMIT
        i, j = self.model.topology.pairs[pair]
        if self.model.topology.shape_links[i] < 0:
            return self.owners[j], self.owners[i]
        return min(self.owners[i], self.owners[j]), max(self.owners[i], self.owners[j])

    def _friction(self, lane: Array, pair: Array) -> Array:
        """Friction (N,) of each impact; none at limits."""
        mu = np.asarray(self.model.pair_friction)
        mu = np.broadcast_to(mu, (self.lanes, mu.shape[-1]))
        return np.where(pair >= 0, mu[lane, np.maximum(pair, 0)], 0.0) if mu.size else np.zeros(len(pair))

    @cached_property
    def owners(self) -> tuple[str, ...]:
        """The name of the owner of each shape of the model."""
        return shape_owners(self.recording.scene, self.model.topology)


@dataclass(frozen=True)
class EnergyLedger:
    """The energy ledger, (L, F) each [J]: kinetic, potential, and the losses of impacts."""

    kinetic: Array
    potential: Array
    impacts: Array

    @property
    def total(self) -> Array:
        return self.kinetic + self.potential

    @property
    def rest(self) -> Array:
        """Other losses of energy: friction between impacts, dampers; less the work of motors."""
        return self.total[:, :1] - self.total - self.impacts

    @property
    def scale(self) -> float:
        """The scale of energies: the largest kinetic energy, or swing of the potential [J]."""
        return float(max(np.nanmax(self.kinetic), np.nanmax(span(self.potential, -1)), np.finfo(float).tiny))


def span(x: Array, axis: int) -> Array:
    """Largest less smallest along an axis, of the frames that lanes reached."""
    return np.nanmax(x, axis) - np.nanmin(x, axis)
