"""Recordings of runs: in memory, in files, and what is read from them."""
