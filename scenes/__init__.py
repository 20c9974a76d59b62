"""Floor 5: scenes and their use: descriptions, builder, the compile step, the library, recordings, the command line."""
