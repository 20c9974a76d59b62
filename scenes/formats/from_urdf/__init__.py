"""The parts of import_urdf: one part of the format a file. formats/urdf.py is the entry."""
