"""Worlds that are shipped without Python: a static library with a C header, or a page that simulates."""
