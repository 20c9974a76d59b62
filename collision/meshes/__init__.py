"""Surfaces on the host: repair, hulls, convex pieces."""
