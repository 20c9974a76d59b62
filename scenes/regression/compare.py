"""One scene under several laws of impact: the energy and the end of each, and the first difference."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from ..recordings.reading import Reading
from ..recordings.recording import Recording
from ..sources import SceneLike
from .invariants import rounding
from .runs import record_run
from .table import Table

LAWS = ("newton", "poisson", "stronge")


@dataclass(frozen=True)
class Comparison:
    """Runs of a scene.  title: the scene's.

    recordings: law -> single run, in the order given; others are compared with the first."""

    title: str
    recordings: Mapping[str, Recording]

    @functools.cached_property
    def readings(self) -> dict[str, Reading]:
        return {law: Reading(recording) for law, recording in self.recordings.items()}

    def table(self) -> Table:
        """A row for each law: impacts, lost energy, and the distance of its links' ends from the first law's."""
        first = next(iter(self.readings.values()))
        rows = []
        for law, reading in self.readings.items():
            ledger = reading.ledger
            total = ledger.total[0]
            rows.append((
                law, len(reading.impacts.t), float(total[0] - total[-1]), float(ledger.impacts[0, -1]),
                not impacts_lose(reading),
                *end_off(first, reading), self._parts(law),
            ))  # fmt: skip
        head = ("law", "impacts", "energy lost [J]", "by impacts [J]", "an impact gains")
        return Table((*head, "end off [m]", "by", "parts at impact"), tuple(rows))

    def impacts(self, n: int = 10) -> Table:
        """The first n impacts side by side, for each law time, normal and tangential impulse, normal velocity after."""
        laws = [(law, reading.impacts) for law, reading in self.readings.items()]
        rows = []
        for k in range(min(n, max(len(x.t) for _, x in laws))):
            row: list[Any] = [k]
            for _, x in laws:
                there = k < len(x.t)
                numbers = (float(y) for y in (x.t[k], x.p_n[k], x.p_t[k], x.u_n[k, 1])) if there else (None,) * 4
                row += [str(x.pairs[k]) if there else "", *numbers]
            rows.append(tuple(row))
        columns = ("pair", "t [s]", "p_n [N s]", "p_t [N s]", "u_n after [m/s]")
        return Table(("impact", *(f"{law}: {name}" for law, _ in laws for name in columns)), tuple(rows))

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """Energy and the most telling coordinate under each law, as a picture (.png, .svg); needs matplotlib."""
        from ..show.plots import plot_laws

        return plot_laws(self.recordings, self.title, path)

    def _parts(self, law: str) -> int | None:
        """Index of the first impact that differs from the first law's; None if all are equal."""
        ours, theirs = (
            np.column_stack([x.t, x.p_n, x.p_t, x.u_n, x.u_t])
            for x in (next(iter(self.readings.values())).impacts, self.readings[law].impacts)
        )
        n = min(len(ours), len(theirs))
        scale = np.abs(ours).max(0, initial=np.finfo(float).tiny)
        apart = np.flatnonzero((np.abs(ours[:n] - theirs[:n]) > rounding(self.readings[law]) * scale).any(1))
        return int(apart[0]) if len(apart) else None if len(ours) == len(theirs) else n


def compare_laws(scene: SceneLike, laws: Sequence[str] = LAWS, *, title: str = "", **keywords: Any) -> Comparison:
    """Run a scene under several laws. scene, title, keywords: see `record_run`."""
    if len({*laws}) < max(2, len(laws)):
        raise ValueError(f"compare_laws: laws are {', '.join(laws) or 'none'}; give two or more, each once")
    runs = {law: record_run(scene, title=title, **{**keywords, "law": law, "throw": False}) for law in laws}
    return Comparison(next(iter(runs.values())).title, runs)


def impacts_lose(reading: Reading) -> bool:
    """Return whether no impact gains energy, beyond rounding."""
    kinetic = reading.impacts.kinetic
    return bool((kinetic[:, 1] - kinetic[:, 0] <= rounding(reading) * reading.ledger.scale).all())


def end_off(first: Reading, other: Reading, lane: int = 0) -> tuple[float, str]:
    """Largest distance between the ends of a link's centre of mass in two runs [m], and that link."""
    a, b = (reading.centers(reading.q[:, -1:])[lane, 0] for reading in (first, other))
    off = np.linalg.norm(a - b, axis=-1)
    worst = int(np.argmax(off))
    return float(off[worst]), other.model.topology.names[worst] if off[worst] > 0 else ""
