"""Output of commands: tables and lines on stdout, notes and errors on stderr, plain without a terminal."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from ..wording import MESSAGE, abridge


def _console(stderr: bool) -> Console:
    shown = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, markup=False, highlight=False, soft_wrap=not shown, width=None if shown else 200)


out, err = _console(stderr=False), _console(stderr=True)


def complain(message: str) -> None:
    """Print one line on stderr."""
    err.print(f"error: {abridge(' '.join(message.split()), MESSAGE)}", style="red", soft_wrap=True)


def note(message: str) -> None:
    err.print(message, style="yellow", soft_wrap=True)


def say(message: str, **style: Any) -> None:
    out.print(message, soft_wrap=True, **style)


def table(*headers: str, rows: Iterable[tuple[str, ...]]) -> None:
    """Print columns two blanks apart."""
    shown = Table(*headers, box=None, show_header=any(headers), pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        shown.add_row(*row)
    out.print(shown)


def emit(data: object) -> None:
    """Print one JSON document; numbers that are not finite become null."""
    print(json.dumps(_finite(data), indent=2, default=str))


def _finite(x: object) -> object:
    if isinstance(x, dict):
        return {name: _finite(value) for name, value in x.items()}
    if isinstance(x, list | tuple):
        return [_finite(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
