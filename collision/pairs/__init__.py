"""The narrow phase, one family of pairs a file; `..narrow` holds the table."""
