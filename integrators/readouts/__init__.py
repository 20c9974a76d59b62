"""Readouts: what a run reports of the time between its frames, besides the states at them."""
