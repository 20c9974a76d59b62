"""Windows of heightfields: the cells that a body can touch at once; their number is fixed by `compile_scene`."""

from __future__ import annotations

import numpy as np

from ...collision.host.radii import bounding_radii
from ...collision.poses import Array
from ...engine.model import Model

Window = tuple[int, int]


def windows(model: Model) -> tuple[Window, ...]:
    """Rows and columns of cells in the window of each shape; zeros except for heightfields.

    The window reaches half a cell beyond the largest shape that may touch, at any position within a cell.
    """
    kinds, grids = model.topology.shape_kinds, model.topology.shape_grid
    if "heightfield" not in kinds:
        return ((0, 0),) * len(kinds)
    radius, size = bounding_radii(model), np.asarray(model.shape_size)
    pairs = np.array(model.topology.pairs, int).reshape(-1, 2)
    cells: list[Window] = []
    for k, kind in enumerate(kinds):
        others = np.concatenate([pairs[pairs[:, 0] == k, 1], pairs[pairs[:, 1] == k, 0]])
        widest = 2 * radius[others].max(initial=0.0)
        cells.append(_window(grids[k], size[k], widest) if kind == "heightfield" else (0, 0))
    return tuple(cells)


def _window(grid: tuple[int, int], cell: Array, width: float) -> Window:
    rows, columns = (int(min(n - 1, np.ceil(width / d) + 2)) for n, d in zip(grid, cell, strict=False))
    return rows, columns
