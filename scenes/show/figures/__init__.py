"""What each picture of a run shows, drawn into the axes it is given. Only `plots.py` imports matplotlib."""
