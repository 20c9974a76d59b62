"""Scenes and runs as files."""
