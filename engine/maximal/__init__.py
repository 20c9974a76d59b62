"""A model put in maximal coordinates: every link a body of its own, every joint a loop (of `engine/loops/`)."""
