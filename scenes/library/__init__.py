"""The scene library: one file per family; `registry.py` lists them by name."""
