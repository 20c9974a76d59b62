"""Bounds of how fast links and their points can move."""
