"""A budget of time for each frame, kept by what ticks have taken lately.

A program cannot look at a clock, so the host tells it how many ticks it may try: as many as fit. Half of them are kept
for windows, which are as long as that takes. A frame's ticks differ, so a budget is kept on the whole, and not by each.
"""

from __future__ import annotations

import math

FEWEST = 4  # ticks: one looks, one steps, and two windows
SLOWER, FASTER = 0.5, 0.05  # of what a frame's ticks took, in what is expected of the next: slow ones count at once


class Pace:
    """seconds: of a frame."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.tick = seconds, 0.0

    def room(self, dt: float, max_ticks: int, window: float | None) -> tuple[int, float | None]:
        """For a frame of dt [s], how many ticks are tried, and the length of the windows behind them [s].

        max_ticks, window: what they are at most and at least, where there is time enough.
        """
        if self.tick == 0:  # nothing is known
            return max_ticks, window
        fit = max(FEWEST, math.floor(self.seconds / self.tick))
        if window is None:
            return min(max_ticks, fit), None
        length = max(window, dt / (fit // 2))
        return max(1, min(max_ticks, fit - math.ceil(dt / length))), length

    def took(self, seconds: float, ticks: int) -> None:
        """What a frame did."""
        each = seconds / max(ticks, 1)
        share = SLOWER if each > self.tick else FASTER
        self.tick = each if self.tick == 0 else self.tick + share * (each - self.tick)
