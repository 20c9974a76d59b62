"""A viewer of recordings and live worlds, in the browser by viser."""
