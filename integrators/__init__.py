"""Floor 4: how time passes: motion schemes and rollouts."""
