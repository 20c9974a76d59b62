"""Printing of records: a headline and a few rows, at most six lines of text, and a small table in a notebook.

Inside jit there are no numbers to show; their shapes are shown instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, TypeVar

import numpy as np

LINES, WIDTH = 6, 110  # of the text
FEW = 8  # numbers, or names, that are written out

Row = tuple[str, str]
T = TypeVar("T", bound=type)


def display_as(describe: Callable[[Any], tuple[str, Sequence[Row]]]) -> Callable[[T], T]:
    """Decorate a class: its repr is the headline and the rows (name, text) that `describe` returns for an object."""

    def text(self: object) -> str:
        head, rows = describe(self)
        lines = [f"{type(self).__name__}: {head}", *(f"  {name}: {text}" for name, text in rows[: LINES - 1])]
        return "\n".join(line if len(line) <= WIDTH else line[: WIDTH - 3] + "..." for line in lines)

    def table(self: object) -> str:
        head, rows = describe(self)
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        return f"<table><caption>{escape(type(self).__name__)}: {escape(head)}</caption>{cells}</table>"

    def decorate(kind: T) -> T:
        kind.__repr__ = text  # type: ignore[method-assign]
        kind._repr_html_ = table  # type: ignore[attr-defined]
        return kind

    return decorate


def values(x: object) -> np.ndarray | None:
    """Return the values in numpy; None if x is no array, or its values are not known: traced, or of other processes."""
    if isinstance(x, np.ndarray | np.generic):
        return np.asarray(x)
    import jax.core  # a scene prints without jax

    here = isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer) and x.is_fully_addressable
    return np.asarray(x) if here else None


def numbers(x: Any) -> str:
    """Text of an array: a few numbers as they are, many by their shape and range, none by its placeholder."""
    x_here = values(x)
    if x_here is None:
        return f"{x.dtype}{list(x.shape)}" if hasattr(x, "shape") and hasattr(x, "dtype") else str(x)
    if x_here.size <= FEW:
        return np.array2string(x_here + 0, precision=4, separator=" ", suppress_small=True).replace("\n", "")
    finite = x_here[np.isfinite(x_here)] if np.issubdtype(x_here.dtype, np.inexact) else x_here
    if not finite.size:
        return f"{list(x_here.shape)}, none finite"
    rest = "" if finite.size == x_here.size else f", {x_here.size - finite.size} not finite"
    return f"{list(x_here.shape)}, {finite.min():.4g} to {finite.max():.4g}{rest}"


def names(things: Iterable[object]) -> str:
    """The first few names, and the count of the others."""
    every = [str(name) for name in things]
    more = f", and {len(every) - FEW} more" if len(every) > FEW else ""
    return ", ".join(every[:FEW]) + more


def count(number: int, what: str) -> str:
    """A count with its noun, e.g. "1 link", "2 links"; bodies and the like end with ies."""
    if number == 1:
        return f"1 {what}"
    return f"{number} {what[:-1]}ies" if what.endswith("dy") else f"{number} {what}s"


def counts(kinds: Iterable[str]) -> str:
    """Counts by kind, e.g. "2 box, 1 plane"."""
    return ", ".join(f"{n} {kind}" for kind, n in Counter(kinds).most_common()) or "none"


def lanes_text(lead: Sequence[int]) -> str:
    """Text of the leading axes of lanes; empty for a single lane."""
    return f", {' x '.join(map(str, lead))} lanes" if lead else ""
