"""Parts of the broad phase: sets of pairs as bits, sorted cells, the matrix of all pairs."""
