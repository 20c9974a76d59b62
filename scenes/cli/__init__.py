"""The command line: `carom COMMAND`. What takes long to import is imported inside `main`, where Ctrl-C ends it well,
and what needs jax inside the commands: `carom --help` answers at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .interrupts import end_at_once

if TYPE_CHECKING:
    from .commands import app as app

__all__ = ["app", "main"]


def main() -> None:
    """Runs what was typed, and leaves the process with an exit code."""
    end_at_once()
    from .commands import app

    app()


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .commands import app

    return app
