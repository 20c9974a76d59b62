"""The program `carom`: its commands register here, and users' mistakes end here, in one line.

Exit codes: 0 success; 1 the physics or a check failed, or the disk is full; 2 an argument or a file is wrong; 130
interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
import typer.core

from ..wording import abridge
from .interrupts import INTERRUPTED
from .output import complain

UsageError: Any = typer.BadParameter.__base__  # click's, which typer has in one module or another
FAILED, WRONG = 1, 2
ORDER = ("run", "sweep", "list", "info", "export", "plot", "view", "replay", "check", "compare", "bench")


class Commands(typer.core.TyperGroup):
    """Commands, whose errors print one line. With CAROM_TRACEBACK=1 in the environment, Python prints the traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands, in the order in which they are needed."""
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> Any:
        """Run, and end the process with an exit code."""
        extra["standalone_mode"] = False
        try:
            code = super().main(args, "carom", **extra)
        except UsageError as error:
            code = WRONG
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()
            else:
                command = error.ctx.command_path if error.ctx else "carom"
                complain(f"{error.format_message().rstrip('.')} ({command} --help tells more)")
        except typer.Abort:  # older versions of typer turn Ctrl-C into it
            code = INTERRUPTED
        except (ValueError, OSError, RuntimeError, ImportError, MemoryError) as error:
            if os.environ.get("CAROM_TRACEBACK"):
                raise
            words = _words(error)
            if words is None:
                raise
            complain(words)
            code = WRONG if isinstance(error, ValueError | ImportError) else FAILED
        sys.exit(code if isinstance(code, int) else 0)


def _words(error: Exception) -> str | None:
    """The message for a user; None for errors that are not the user's."""
    from ...engine.results import SimulationError

    if isinstance(error, RuntimeError) and not isinstance(error, SimulationError):
        return None
    if isinstance(error, MemoryError):
        return f"this machine has too little memory for it: {error or 'give less to do at once'}"
    if isinstance(error, ImportError):
        return _missing(error)
    if isinstance(error, OSError):
        name = f"{abridge(os.fsdecode(error.filename))}: " if isinstance(error.filename, str | bytes) else ""
        return f"{name}{error.strerror or error}"
    return str(error)


def _missing(error: ImportError) -> str | None:
    """The message about an optional library that is missing; None: something else is broken."""
    extras = {"matplotlib": "view", "viser": "view", "mujoco": "io", "pyarrow": "sweep", "distributed": "dask"}
    name = (error.name or "").partition(".")[0]
    if name in extras:
        return f"{name} is not installed: pip install 'carom[{extras[name]}]'"
    return None if error.name else str(error)  # our own errors have no name, and say what to install


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Carom simulates rigid and articulated bodies; every contact is an impulse. Start with: carom run pool_break",
)
