"""The parts of compile_scene: one kind of check or table a file. scenes/compile.py is the entry."""
