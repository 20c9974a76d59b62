"""All commands of the program: they register when their files are imported."""

from . import benchmarks, checks, comparing, exporting, files, library, runs, sweeps  # noqa: F401
from .program import app as app
