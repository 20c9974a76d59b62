"""The command line: `carom list`, `carom info SCENE`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, help="Carom's scenes, from a shell.")
main = app


@app.callback()
def _commands() -> None:
    """Keeps the commands' names when there is but one."""


@app.command("list")
def list_scenes() -> None:
    """List the scenes of the library, one line each."""
    from .library.registry import SCENES  # imported late: `carom --help` needs no jax, and neither does a typing error

    table = Table.grid(padding=(0, 2))
    for name, entry in SCENES.items():
        table.add_row(Text(name, style="bold"), entry.description)
    Console().print(table)


@app.command()
def info(scene: Annotated[str, typer.Argument(help="A scene of the library; `carom list` shows them.")]) -> None:
    """Describe a scene: links, joints, degrees of freedom, the groups they run in, and the pairs that may touch."""
    from .compile import compile_scene
    from .sources import load

    try:
        spec = load(scene)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    model, _ = compile_scene(spec)
