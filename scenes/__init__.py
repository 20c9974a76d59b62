"""Floor 5: what people bring and take away: descriptions, builder, the compile step, the library."""
