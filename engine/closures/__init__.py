"""Constraints besides the tree: joints that close loops, gears, drives, rolling; exact, or by penalty."""
