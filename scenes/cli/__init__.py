"""The command line: `carom COMMAND`. Slow imports happen inside `main`, where Ctrl-C ends them cleanly, and those that
need jax inside the commands, so that `carom --help` is quick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .interrupts import end_at_once

if TYPE_CHECKING:
    from .commands import app as app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command that was typed, and end the process with an exit code."""
    end_at_once()
    from .commands import app

    app()


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .commands import app

    return app
