"""Descriptions are plain data: numbers, strings and tuples, so that they compare, hash and print."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from numpy.typing import ArrayLike

Numbers = ArrayLike  # a number, or numbers in lists, tuples or arrays: all are recorded as nested tuples


def plain(value: Any) -> Any:
    """Return arrays, lists and numpy scalars as (nested) tuples of Python numbers, everything else unchanged."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return tuple(plain(item) for item in value) if isinstance(value, (list, tuple)) else value


def make_plain(spec: Any) -> None:
    """Turn every field of a frozen dataclass into plain data; called from `__post_init__`."""
    for f in fields(spec):
        object.__setattr__(spec, f.name, plain(getattr(spec, f.name)))
