"""Models of resting contact: they carry resting contacts over a step."""
