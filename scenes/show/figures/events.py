"""The timeline of impacts: a row for each pair of bodies, a stem for each impact, as high as its normal impulse."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...recordings.reading import Reading
from .style import BLUE, PALE, SMALL, dress, short

ROWS = 14  # more rows are not readable
HIGH = 0.85  # part of a row: height of the largest impulse's stem


def draw(axes: Any, reading: Reading) -> None:
    impacts, p = reading.impacts, np.abs(reading.impacts.p_n)
    names, which = np.unique(impacts.pairs.astype(str), return_inverse=True)
    weight = np.bincount(which, p, len(names))
    first = np.full(len(names), np.inf)
    np.minimum.at(first, which, impacts.t)
    shown = np.argsort(-weight)[: ROWS if len(names) <= ROWS else ROWS - 1]  # the heaviest
    shown = shown[np.argsort(first[shown], kind="stable")]
    rows = np.full(len(names), len(shown))
    rows[shown] = np.arange(len(shown))
    row, labels = rows[which], [str(names[k]) for k in shown]
    if len(names) > len(shown):
        labels.append(f"{len(names) - len(shown)} other pairs")
    largest = p.max(initial=0.0)
    top = row - HIGH * p / (largest or 1)
    alpha = max(0.05, min(0.8, 60 / max(len(p), 1) ** 0.75))
    many = len(p) > 5000
    axes.vlines(impacts.t, row, top, color=BLUE, alpha=alpha, linewidth=1.1, rasterized=many)
    axes.scatter(impacts.t, top, s=9, color=BLUE, alpha=alpha, linewidths=0, rasterized=many)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.7 if labels else 1, -1.0)
    axes.set_xlim(np.nanmin(reading.t), np.nanmax(reading.t))
    lanes = f" of {reading.lanes} lanes" if reading.lanes > 1 else ""
    said = f"{len(p)} impacts{lanes}; height: normal impulse, up to {short(largest)} N s" if len(p) else "No impacts"
    dress(axes, said, "time [s]", "", grid="x")
    axes.hlines(range(len(labels)), *axes.get_xlim(), color=PALE, linewidth=0.8, zorder=0)
    axes.tick_params(axis="y", labelsize=SMALL if len(labels) < 10 else SMALL - 1.5, length=0)
