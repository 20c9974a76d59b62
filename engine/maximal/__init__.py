"""Maximal coordinates: every link a body of its own, every joint a loop."""
