"""The tasks, one family per file."""
