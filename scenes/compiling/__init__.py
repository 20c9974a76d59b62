"""The parts of compile_scene: one kind of check or table per file. scenes/compile.py is the entry."""
