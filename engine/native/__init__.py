"""A compiler from the jaxpr of one lane's program to machine code. See docs/native.md."""
