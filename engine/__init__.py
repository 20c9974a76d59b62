"""Floor 1: what moves, and how: component algebra, model, state, result codes, dynamics."""
