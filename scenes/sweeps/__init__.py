"""Sweeps: many lanes of one scene with other numbers, in shards that are kept as they are done."""
