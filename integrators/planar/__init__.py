"""How time passes for planar chains: Wawrzynski (2005), sections 3, 7 and 12."""
