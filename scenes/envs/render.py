"""Pictures of tasks: capsules in a window, with smooth edges, by numpy alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ..show.colours import Colour
from .task import Segment

BACKGROUND: Colour = (0.97, 0.975, 0.98)


def picture(
    segments: Iterable[Segment], window: tuple[float, float, float, float], *, width: int = 400
) -> npt.NDArray[np.uint8]:
    """Picture (H, W, 3) of the segments, later ones over earlier ones, with square pixels; W = width, and H even, as
    videos need it.

    segments: (x0, y0, x1, y1, radius, colour), a capsule from one point to another [m], a disc if they are the same.
    window: (x_min, x_max, y_min, y_max) of the plane [m], y upwards.

    A capsule covers the same part of a pixel as a strip of its width covers of a strip as wide as the pixel: exact for
    upright and level edges of any capsule; a slanted edge is within a twentieth of a pixel of its position. Only pixels
    near the capsule change. The ground is a capsule too: wide, thick, and mostly below the window.
    """
    x_min, x_max, y_min, y_max = window
    pixel = (x_max - x_min) / width  # [m]
    image = np.empty((2 * max(1, round((y_max - y_min) / pixel / 2)), width, 3), np.float32)
    image[:] = BACKGROUND
    for x0, y0, x1, y1, radius, colour in segments:
        # in pixels, from the picture's upper left corner
        ends = (x0 - x_min) / pixel, (y_max - y0) / pixel, (x1 - x_min) / pixel, (y_max - y1) / pixel
        if np.isfinite(ends).all():
            _over(image, *ends, radius / pixel, colour)
    return (255 * image + 0.5).astype(np.uint8)


def _over(image: npt.NDArray[np.float32], x0: float, y0: float, x1: float, y1: float, r: float, colour: Colour) -> None:
    """Draw a capsule over the image, in place; all in pixels."""
    reach = r + 1.0
    rows, columns, _ = image.shape
    left, right = _within(min(x0, x1) - reach, max(x0, x1) + reach, columns)
    top, bottom = _within(min(y0, y1) - reach, max(y0, y1) + reach, rows)
    if left == right or top == bottom:
        return
    # from the first end to the centres of pixels; single precision once the window's corner is taken off
    x = (np.arange(left, right) + (0.5 - x0)).astype(np.float32)
    y = (np.arange(top, bottom) + (0.5 - y0)).astype(np.float32)[:, None]
    dx, dy = x1 - x0, y1 - y0
    along = np.clip((x * dx + y * dy) / max(dx * dx + dy * dy, 1e-12), 0.0, 1.0)
    away = np.hypot(x - along * dx, y - along * dy)
    covered = np.clip(np.minimum(away + 0.5, r) - np.maximum(away - 0.5, -r), 0.0, 1.0)[:, :, None]
    part = image[top:bottom, left:right]
    part += covered * (np.asarray(colour, np.float32) - part)


def _within(low: float, high: float, end: int) -> tuple[int, int]:
    """The pixels of 0 to end, exclusive, that reach from low to high."""
    return int(min(max(np.floor(low), 0), end)), int(min(max(np.ceil(high), 0), end))
