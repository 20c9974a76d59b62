"""Figures of a run, each drawn into given axes. Only `plots.py` imports matplotlib."""
