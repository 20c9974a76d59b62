"""Impulses in Coulomb's cone: |p_t| against p_n. Impacts that slide to their end lie on the cone, others inside."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...recordings.reading import LIMIT, Reading
from .style import BLUE, DASHES, INK, ORANGE, dress, legend_beside

FEW = 4  # cones in one picture
ON = 1e-6  # part of mu p_n: impulses this near to the cone are on it


def draw(axes: Any, reading: Reading) -> None:
    impacts = reading.impacts
    touching = impacts.b != LIMIT
    p_n, p_t, mu = (x[touching] for x in (impacts.p_n, impacts.p_t, impacts.friction))
    cones = np.unique(mu)
    single = len(cones) <= FEW
    across = p_n if single else mu * p_n
    largest = across.max(initial=0.0) or 1.0
    top = max(p_t.max(initial=0.0), (cones.max(initial=0.0) * largest) if single and len(cones) else largest) or 1.0
    slides = p_t >= (1 - ON) * mu * p_n
    alpha = max(0.1, min(0.8, 40 / max(len(p_n), 1) ** 0.6))
    for which, color, mark, says in ((slides, BLUE, "o", "slid to the end"), (~slides, ORANGE, "^", "slip stopped")):
        if which.any():
            axes.scatter(across[which], p_t[which], s=16, color=color, marker=mark, alpha=alpha, linewidths=0,
                         label=f"{which.sum()} {says}", rasterized=len(p_n) > 5000)  # fmt: skip
    ray = np.array([0.0, 1.05 * largest])
    for k, friction in enumerate(cones if single else (1.0,)):
        says = f"$\\mu$ = {friction:.3g}" if single else "$|p_t| = \\mu\\, p_n$"
        axes.plot(ray, friction * ray, color=INK, linewidth=1, linestyle=DASHES[k], label=says)
    axes.set_xlim(0, 1.05 * largest)
    axes.set_ylim(-0.03 * top, 1.08 * top)
    x = "normal impulse $p_n$ [N s]" if single else "$\\mu\\, p_n$ [N s]"
    dress(
        axes,
        "Impulses in the friction cone" if len(p_n) else "No impulses of impacts",
        x,
        "tangential impulse $|p_t|$ [N s]",
    )
    legend_beside(axes)
