"""Loops tie links in addition to the tree, by scalar constraints: rows, errors, rates, Jacobians, equations."""
