"""Impact laws, one in each file; table.py lists them by name."""
