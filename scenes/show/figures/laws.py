"""One scene under several laws of impact: its energy, and the most telling coordinate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...recordings.reading import Reading
from .phase import coordinates, most_telling
from .style import COLORS, DASHES, dress, legend_beside, short


def draw(panels: tuple[Any, Any, Any], readings: Mapping[str, Reading]) -> None:
    """Draw runs.  panels: axes for losses of impacts, energy, and coordinate.  readings: law -> single run."""
    taken, energy, coordinate = panels
    first = next(iter(readings.values()))
    telling = most_telling(first)
    start, end = float(first.t[0, 0]), float(np.nanmax(first.t))
    losses: list[float] = []
    for k, (law, reading) in enumerate(readings.items()):
        how: dict[str, Any] = {"color": COLORS[k % 6], "linestyle": DASHES[k % 6], "linewidth": 1.6, "label": law}
        impacts = reading.impacts
        lost = np.cumsum(impacts.kinetic[:, 0] - impacts.kinetic[:, 1])
        losses.append(float(lost[-1]) if len(lost) else 0.0)
        taken.step([start, *impacts.t, end], [0.0, *lost, losses[-1]], where="post", **how)
        energy.plot(reading.t[0], reading.ledger.total[0] - np.nanmin(first.ledger.potential), **how)
        if telling is not None:
            coordinate.plot(reading.t[0], coordinates(reading)[telling.name].q[0], **how)
    dress(taken, f"Taken by impacts: {short(min(losses))} to {short(max(losses))} J", "", "energy [J]")
    dress(energy, "Energy left, above its lowest", "", "energy [J]")
    name, unit = (telling.name, telling.unit) if telling is not None else ("a coordinate", "m")
    dress(
        coordinate,
        name if telling is not None else "Nothing moves",
        "time [s]",
        f"{name} [{unit}]",
    )
    for axes in panels:
        axes.set_xlim(start, end)
    legend_beside(taken)
