"""Queries of a scene at one instant: rays."""
