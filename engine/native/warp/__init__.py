"""A lane run by a warp: 32 threads of a GPU, side by side. See docs/gpu.md."""
