"""Analytic derivatives of inverse, forward and hybrid dynamics by coordinates, velocities and given values."""
