"""Time stepping of planar chains: Wawrzynski (2005), sections 3, 7 and 12."""
