"""Floor 2: what is near what: shapes and their mass properties."""
