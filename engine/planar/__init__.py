"""Planar chains of point masses (Wawrzynski 2005): accelerations in O(n), their sensitivity, prescribed angles."""
