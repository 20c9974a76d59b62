"""Sweeps: many lanes of one scene with varied numbers, in shards that are kept when they are done."""
