"""Floor 1: component algebra, model, state, result codes, dynamics of joints and links."""
