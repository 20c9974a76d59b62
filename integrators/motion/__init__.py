"""Motion schemes: pure functions (model, state, h, control, impulses) -> state, one in each file."""
