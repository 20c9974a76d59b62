"""What compile_scene is made of: one kind of check or table a file. scenes/compile.py is the entry."""
