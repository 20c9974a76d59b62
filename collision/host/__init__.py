"""Parts of the FCL backend, in numpy on the host."""
