"""Two event logs of one scene, the old one and the new one: impulses over time, and the kinetic energy after each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...recordings.events import EventLog
from .style import BLUE, RED, dress, legend_beside


def draw(above: Any, below: Any, old: EventLog, new: EventLog) -> None:
    """Draw two logs.  above, below: axes for the impulses, old ones upwards, new ones downwards, and for the energy."""
    for name, log, color, sign, mark in (("old", old, BLUE, 1, "o"), ("new", new, RED, -1, "x")):
        impacts = sorted(log.impacts, key=lambda i: i.t)
        t, p_n = np.array([i.t for i in impacts]), sign * np.array([i.p_n for i in impacts])
        above.vlines(t, 0, p_n, color=color, linewidth=1.2, label=f"{name}: {len(t)} impacts")
        kinetic = [i.kinetic[1] for i in impacts]
        below.plot(t, kinetic, color=color, marker=mark, markersize=4, linewidth=0.8, label=name)
    above.axhline(0, color="black", linewidth=0.6)
    above.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.3g}")
    dress(above, "Normal impulses: old up, new down", "", "p_n [N s]")
    dress(below, "Kinetic energy after each impact", "time [s]", "energy [J]")
    legend_beside(above)
    legend_beside(below)
