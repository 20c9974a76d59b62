"""Emission: from clusters and nodes to the text of LLVM's language."""
