"""Impact laws, one a file; table.py names them."""
