"""Rules: jax's primitives, family by family."""

from . import calls, control, elementwise, indexing, reductions, shaping  # noqa: F401  they enter their rules in the table
from .table import RULES, translate, translate_closed

__all__ = ["RULES", "translate", "translate_closed"]
