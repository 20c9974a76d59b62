"""Rules: jax's primitives, family by family."""

from . import (  # noqa: F401  importing them enters their rules in the table
    calls,
    control,
    elementary,
    elementwise,
    indexing,
    reductions,
    shaping,
)
from .table import RULES, translate, translate_closed

__all__ = ["RULES", "translate", "translate_closed"]
