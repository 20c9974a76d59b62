"""The command line: `carom COMMAND`. What needs jax is imported inside the commands: `carom --help` answers at once."""

from . import benchmarks, checks, comparing, files, library, runs  # noqa: F401  # commands register when imported
from .app import app, main

__all__ = ["app", "main"]
