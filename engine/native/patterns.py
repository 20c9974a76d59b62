"""Patterns in tables of indices that a vector can read at once."""

from __future__ import annotations

import numpy as np

from .graph import Value

_KINDS: dict[tuple[int, int], str] = {}


def row_kind(view: Value, length: int) -> str:
    """Pattern of indices along rows of this length: a "line" of neighbours, all the "same", or "" for neither."""
    key = (view.id, length)
    if key not in _KINDS:
        steps = np.diff(view.param.reshape(-1, length), axis=1)
        _KINDS[key] = "line" if (steps == 1).all() else "same" if not steps.any() else ""
    return _KINDS[key]
