"""Floor 3: what a contact does. Empty until the contact model lands on it."""
