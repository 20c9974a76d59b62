"""Contact regression: golden event logs, invariants, sweeps, comparisons of laws, and a page of changes."""
