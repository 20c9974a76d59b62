"""The motion of bodies: their paths from above or from the side, or their heights over time, whichever shows most."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...recordings.reading import Reading, span
from .between import free_paths
from .style import BLUE, COLORS, INK, dress, fan, legend_beside

NAMED = len(COLORS)  # bodies with a colour of their own
STILL = 1e-7  # [m] bodies that move less are at rest
DRAWN = 200  # lanes of a batch that are drawn
FLAT = 0.2  # a motion whose height changes less than this part of its reach is seen from above


def draw(axes: Any, reading: Reading) -> None:
    positions = reading.centers(reading.q)
    reach = np.nanmax(span(positions, 1), axis=(0, 1))
    plan = max(reach[:2]) > 0 and reach[2] < FLAT * max(reach[:2])
    travel = np.nanmax(np.linalg.norm(span(positions, 1), axis=-1), axis=0)
    order = np.argsort(-travel)
    names = reading.model.topology.names
    if plan:
        _paths(axes, positions, order, names, (0, 1) if reach[1] > 0.02 * reach[0] else (0, 2), reading)
    else:
        _heights(axes, positions[..., 2], order, names, reading, bool(travel.max() < STILL))


def _paths(
    axes: Any, positions: np.ndarray, order: np.ndarray, names: Any, plane: tuple[int, int], reading: Reading
) -> None:
    """Draw paths of every link of one run, or of the link of a batch that goes farthest, in every lane."""
    i, j = plane
    if reading.lanes > 1:
        paths = positions[:: -(-reading.lanes // DRAWN), :, order[0]]
        axes.plot(paths[..., i].T, paths[..., j].T, color=BLUE, linewidth=0.7, alpha=0.35)
        axes.plot(*paths[:, -1, [i, j]].T, ".", color=INK, markersize=3)
        said = f"Path of {names[order[0]]} in {reading.lanes} lanes, and where it ends"
    else:
        whole = free_paths(reading)
        for rank, link in enumerate(order):
            path, named = positions[0, :, link], rank < NAMED and len(order) > 1
            path = whole[link].position if link in whole else path
            color = COLORS[rank] if rank < NAMED else "#999999"
            how: dict[str, Any] = {"label": names[link], "linewidth": 1.3} if named else {"linewidth": 0.7}
            axes.plot(path[:, i], path[:, j], color=color, zorder=3 - rank / 99, **how)
            axes.plot(path[-1:, i], path[-1:, j], "o", color=color, markersize=4, zorder=4)
        said = "Paths, with a dot where each ends"
        if len(order) > 1:
            if len(order) > NAMED:
                axes.plot([], [], color="#999999", linewidth=0.7, label=f"{len(order) - NAMED} others")
            legend_beside(axes)
    view = "from above" if plane == (0, 1) else "from the side"
    dress(axes, f"{said}, {view}", "x [m]", f"{'xyz'[j]} [m]")
    if plane == (0, 1):
        axes.set_aspect("equal", adjustable="datalim")


def _heights(axes: Any, z: np.ndarray, order: np.ndarray, names: Any, reading: Reading, still: bool) -> None:
    t = reading.t[0]
    if reading.lanes > 1:
        fan(axes, t, z[:, :, order[0]], BLUE, names[order[0]])
        said, label = f"Height of {names[order[0]]} in {reading.lanes} lanes", "z [m]: median, middle half, nine tenths"
    else:
        whole = free_paths(reading)
        for rank, link in enumerate(order[:NAMED]):
            times, heights = (whole[link].t, whole[link].position[:, 2]) if link in whole else (t, z[0, :, link])
            axes.plot(times, heights, color=COLORS[rank], linewidth=1.4, label=names[link])
        said, label = f"Height of {names[order[0]]}" if len(order) == 1 else "Heights of links", "z [m]"
        if len(order) > NAMED:
            said = f"Heights of {NAMED} of {len(order)} links" + ("" if still else ", those that move most")
        if len(order) > 1:
            legend_beside(axes)
    axes.set_xlim(t[0], np.nanmax(reading.t))
    dress(axes, said, "time [s]", label)
