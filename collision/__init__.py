"""Floor 2: collision detection; shapes and their mass properties."""
