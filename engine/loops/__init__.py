"""What ties links besides the tree, as scalar constraints: rows, errors, rates, Jacobians, and their equations."""
