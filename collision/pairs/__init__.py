"""The narrow phase, one family of pairs per file; the table is in `..narrow`."""
