"""Friction integrated through one impact."""
