"""A budget of time for each frame, kept by the times of recent ticks.

A program cannot read a clock, so the host sets the number of ticks it may try: as many as fit. Half of them are
reserved for windows, whose length follows from that. Times of ticks differ, so a budget is kept on average, not by each
frame.
"""

from __future__ import annotations

import math

FEWEST = 4  # ticks: one looks, one steps, and two windows
SLOWER, FASTER = 0.5, 0.05  # weights of a frame's tick time in the expected one: slow ticks count at once


class Pace:
    """A pace.  seconds: budget of a frame."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.tick = seconds, 0.0

    def room(self, dt: float, max_ticks: int, window: float | None) -> tuple[int, float | None]:
        """Number of ticks of a frame of dt [s], and the length of the windows after them [s].

        max_ticks, window: the largest number and the least length, used if there is time.
        """
        if self.tick == 0:  # nothing is known
            return max_ticks, window
        fit = max(FEWEST, math.floor(self.seconds / self.tick))
        if window is None:
            return min(max_ticks, fit), None
        length = max(window, dt / (fit // 2))
        return max(1, min(max_ticks, fit - math.ceil(dt / length))), length

    def took(self, seconds: float, ticks: int) -> None:
        """Record the time and the ticks of a frame."""
        each = seconds / max(ticks, 1)
        share = SLOWER if each > self.tick else FASTER
        self.tick = each if self.tick == 0 else self.tick + share * (each - self.tick)
