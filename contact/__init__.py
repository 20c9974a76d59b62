"""Floor 3: what a contact does."""
