"""Sketches of the tasks: segments for `render.py`. NumPy, one lane."""

from __future__ import annotations

import numpy as np

from .task import Segment

INK = (0.16, 0.18, 0.22)
LINKS = ((0.80, 0.42, 0.18), (0.20, 0.47, 0.65), (0.44, 0.60, 0.28))


def linkage(x: float, y: float, angles: np.ndarray, length: tuple[float, ...], radius: float) -> list[Segment]:
    """Links on one another from (x, y), at absolute angles from the horizontal, counter-clockwise."""
    segments: list[Segment] = []
    for i, (angle, l) in enumerate(zip(angles, length, strict=True)):
        x1, y1 = x + l * float(np.cos(angle)), y + l * float(np.sin(angle))
        segments.append((x, y, x1, y1, radius, LINKS[i % len(LINKS)]))
        x, y = x1, y1
    return segments


def on_a_cart(q: np.ndarray, length: tuple[float, ...], track: float) -> list[Segment]:
    """A cart at q[0] on its track, and links that stand upright at q = 0, clockwise."""
    x = float(q[0])
    rail: Segment = (-track, 0.0, track, 0.0, 0.01, INK)
    cart: Segment = (x - 0.12, 0.0, x + 0.12, 0.0, 0.08, INK)
    return [rail, cart, *linkage(x, 0.0, np.pi / 2 - np.cumsum(q[1:]), length, 0.03)]
