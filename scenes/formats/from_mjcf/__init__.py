"""The parts of an MJCF file, read from what mujoco compiles of it."""
