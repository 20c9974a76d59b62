"""Dynamics of forests of trees, one algorithm per file."""
