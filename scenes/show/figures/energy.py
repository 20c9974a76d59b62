"""The energy ledger: a scene's energies and its losses. It closes: the layers add up to the start."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...recordings.reading import Reading
from .between import energies
from .style import BLUE, GREEN, INK, ORANGE, RED, SKY, dress, fan, legend_beside

STILL = 1e-12  # part of the potential energy: smaller changes are rounding
WORTH = 1e-3  # part of the energy: smaller parts get no layer


def draw(axes: Any, reading: Reading) -> None:
    if reading.lanes > 1:
        _draw_batch(axes, reading)
    else:
        _draw_one(axes, reading)
    legend_beside(axes)


def _draw_one(axes: Any, reading: Reading) -> None:
    """Layers from below: kinetic, potential, lost in impacts; the difference from the start is the rest."""
    ledger, (t, kinetic, potential, impacts, rest) = reading.ledger, energies(reading)
    floor = np.nanmin(potential)
    layers = (
        ("kinetic", BLUE, kinetic),
        ("potential,\nabove its lowest", SKY, potential - floor),
        ("taken by impacts", ORANGE, impacts),
    )
    bottom = np.zeros_like(t)
    if ledger.scale < STILL * np.nanmax(np.abs(ledger.potential)):
        axes.set(xlim=(t[0], np.nanmax(t)), ylim=(0, 1))
        return dress(axes, "Energy: kept, nothing moves", "time [s]", "energy above its lowest [J]", grid="y")
    start, worth = ledger.total[0, 0] - floor, WORTH * ledger.scale
    for name, color, layer in layers:
        if np.nanmax(np.abs(layer)) > worth:
            axes.fill_between(t, bottom, bottom + layer, color=color, alpha=0.75, linewidth=0, label=name)
        bottom = bottom + layer
    for name, color, layer in (("taken by sliding,\ndampers, motors", RED, rest > 0), ("put in", GREEN, rest < 0)):
        if np.nanmax(np.abs(rest[layer]), initial=0.0) > worth:
            axes.fill_between(t, bottom, start, where=layer, color=color, alpha=0.55, linewidth=0, label=name)
    axes.axhline(start, color=INK, linewidth=1, linestyle=(0, (4, 2)), label="at the start")
    axes.set_xlim(t[0], np.nanmax(t))
    axes.set_ylim(0, max(start, float(np.nanmax(bottom))) * 1.04 or 1)
    last = np.flatnonzero(np.isfinite(rest))[-1]
    parts = (("left", start - impacts[last] - rest[last]), ("to impacts", impacts[last]),
             ("to sliding, dampers, motors", rest[last]))  # fmt: skip
    said = ", ".join(f"{100 * part / start:.3g} % {name}" for name, part in parts if abs(part) > worth)
    dress(axes, f"Energy: {said}" if start > 0 else "Energy", "time [s]", "energy [J]", grid="y")


def _draw_batch(axes: Any, reading: Reading) -> None:
    t, ledger = reading.t[0], reading.ledger
    floor = np.nanmin(ledger.potential, -1, keepdims=True)
    fan(axes, t, ledger.total - floor, BLUE, "total,\nabove its lowest")
    fan(axes, t, ledger.impacts, ORANGE, "taken by impacts")
    if np.nanmax(np.abs(ledger.rest)) > WORTH * ledger.scale:
        fan(axes, t, ledger.rest, RED, "taken by sliding,\ndampers, motors")
    axes.set_xlim(t[0], t[-1])
    dress(axes, f"Energy of {reading.lanes} lanes: median, middle half and nine tenths", "time [s]", "energy [J]")
