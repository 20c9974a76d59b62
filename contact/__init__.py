"""Floor 3: contact determination and collision response."""
