"""The ways to carry resting contacts over a step."""
