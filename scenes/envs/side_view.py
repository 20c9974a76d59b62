"""A scene from the side, for tasks without pictures of their own: x to the right, z upwards; the view follows in x.

Spheres and capsules are drawn as such; other shapes as the capsule about their longest axis, flat planes as a line, and
heightfields as the line through their middle. NumPy, one lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...collision.poses import Array, rotation_matrix
from ...engine.model import Model
from ...engine.state import State
from ..compiling.link_poses import link_poses
from .sketches import INK, LINKS
from .task import Segment

THIN = 0.01  # [m] thickness of lines on the ground
FAR = 100.0  # [m] extent of flat ground


@dataclass(frozen=True)
class SideView:
    """A view of a scene.  window: (x_min, x_max, z_min, z_max) [m]."""

    model: Model
    window: tuple[float, float, float, float]

    @staticmethod
    def of(model: Model, state: State) -> SideView:
        """A view of the moving bodies at the start, with half their size around them."""
        view = SideView(model, (-1.0, 1.0, -1.0, 1.0))
        moving = [s for k, s in view._segments(np.asarray(state.q, float)) if k >= 0] or [(0, 0, 0, 0, 1.0, INK)]
        x0, z0, x1, z1, radius = np.array([s[:5] for s in moving]).T
        low = min((np.minimum(x0, x1) - radius).min(), -0.3), (np.minimum(z0, z1) - radius).min()
        high = max((np.maximum(x0, x1) + radius).max(), 0.3), (np.maximum(z0, z1) + radius).max()
        room = 0.5 * max(high[0] - low[0], high[1] - low[1])
        return SideView(model, (low[0] - room, high[0] + room, low[1] - room / 2, high[1] + room / 2))

    def sketch(self, q: np.ndarray) -> list[Segment]:
        """Segments of the scene, statics first."""
        return [segment for _, segment in sorted(self._segments(q), key=lambda entry: entry[0] >= 0)]

    def _segments(self, q: np.ndarray) -> list[tuple[int, Segment]]:
        """Segments with the link that carries each, -1 for the world."""
        topology, segments = self.model.topology, []
        positions, rotations = link_poses(self.model, q)
        eye = float(positions[0, 0]) if len(positions) else 0.0
        for k, (kind, link) in enumerate(zip(topology.shape_kinds, topology.shape_links, strict=True)):
            R, p = (rotations[link], positions[link]) if link >= 0 else (np.eye(3), np.zeros(3))
            at = p + R @ np.asarray(self.model.shape_position[k], float)
            axes = R @ rotation_matrix(np.asarray(self.model.shape_quaternion[k], float))
            colour = LINKS[link % len(LINKS)] if link >= 0 else INK
            for a, b, radius in self._lines(k, kind, at, axes):
                segments.append((link, (a[0] - eye, a[2], b[0] - eye, b[2], radius, colour)))
        return segments

    def _lines(self, k: int, kind: str, at: Array, axes: Array) -> list[tuple[Array, Array, float]]:
        """Ends (3,) and radii of the segments that represent a shape."""
        size, (start, stop) = np.asarray(self.model.shape_size[k], float), self.model.topology.shape_points[k]
        if kind == "plane":
            along = np.array([FAR, 0.0, 0.0])
            return [(at - along, at + along, THIN)] if abs(axes[2, 2]) > 0.999 else []
        if stop > start:
            points = at + np.asarray(self.model.points[start:stop], float) @ axes.T
            rows, columns = self.model.topology.shape_grid[k]
            if rows:
                line = points.reshape(rows, columns, 3)[:, columns // 2]
                return [(a, b, THIN) for a, b in pairwise(line)]
            at, axes, size = points.mean(0), np.eye(3), (points.max(0) - points.min(0)) / 2
        if kind in ("sphere", "capsule", "cylinder"):
            return [(at - axes[:, 2] * size[1], at + axes[:, 2] * size[1], float(size[0]))]
        longest = int(np.argmax(size))
        radius = float(np.median(size))
        along = axes[:, longest] * (size[longest] - radius)
        return [(at - along, at + along, radius)]
