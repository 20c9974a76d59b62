"""Questions asked of a scene that stands still: rays."""
