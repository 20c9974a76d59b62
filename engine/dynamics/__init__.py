"""Dynamics of forests of trees, one algorithm a file."""
