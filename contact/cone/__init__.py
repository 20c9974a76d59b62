"""The cone solver: impulses of all contacts of one instant by Coulomb's law."""
