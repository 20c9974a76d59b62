"""The parts of an MJCF file, read from mujoco's compiled model."""
