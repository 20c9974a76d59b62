"""The tasks, one family a file."""
