"""Planar chains as plain data, their compilation, and their twins: the same chains as scenes of links and joints."""
