"""A world for games: `carom.Live`."""
