"""The style of all pictures: colours that colour-blind people can distinguish, and axes with units."""

from __future__ import annotations

from typing import Any

import numpy as np

# Okabe and Ito, Color Universal Design (2008)
BLUE, ORANGE, GREEN, RED, SKY, PINK = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7"
COLORS = (BLUE, RED, GREEN, ORANGE, PINK, SKY)
DASHES = ((0, (1, 0)), (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1, 2)), (0, (1, 1)), (0, (8, 3)))
INK, PALE = "#333333", "#D9D9D9"
SMALL, BODY, TITLE = 8.5, 9.5, 10.5  # [pt]


def dress(axes: Any, title: str, x: str, y: str, grid: str = "both") -> None:
    """Set title, labels with units, and few lines."""
    axes.set_title(title, loc="left", fontsize=TITLE, color=INK)
    axes.set_xlabel(x, fontsize=BODY, color=INK)
    axes.set_ylabel(y, fontsize=BODY, color=INK)
    axes.tick_params(labelsize=SMALL, colors=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis=grid, color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)


def legend_beside(axes: Any, **how: Any) -> None:
    """Put the legend to the right of the axes, outside of the data."""
    if not axes.get_legend_handles_labels()[0]:
        return
    shape: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=INK, handlelength=1.4, **(shape | how))


def fan(axes: Any, t: np.ndarray, y: np.ndarray, color: str, label: str) -> None:
    """Draw the median over lanes, and the bands of half and nine tenths of them. t: (F,).  y: (L, F)."""
    low, first, median, third, high = np.nanquantile(y, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0)
    axes.fill_between(t, low, high, color=color, alpha=0.15, linewidth=0)
    axes.fill_between(t, first, third, color=color, alpha=0.3, linewidth=0)
    axes.plot(t, median, color=color, linewidth=1.6, label=label)


def short(x: float) -> str:
    return f"{x:.3g}"
