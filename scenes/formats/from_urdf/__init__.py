"""The parts of import_urdf: one part of the format per file. formats/urdf.py is the entry."""
