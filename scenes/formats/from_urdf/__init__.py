"""What import_urdf is made of: one part of the format a file. formats/urdf.py is the entry."""
