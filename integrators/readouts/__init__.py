"""Readouts: quantities that a run reports for the time between frames, besides the states at frames."""
