"""Scenes and runs as pictures."""
