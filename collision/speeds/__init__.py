"""Bounds on the speeds of links and their points."""
