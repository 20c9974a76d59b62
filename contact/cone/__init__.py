"""Many contacts of one instant, in Coulomb's cone together."""
