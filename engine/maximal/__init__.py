"""Models in maximal coordinates: every link is a body of its own, every joint a loop (of `engine/loops/`)."""
