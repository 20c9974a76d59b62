"""`carom bench`: the benchmarks, which come with a clone and not with the wheel."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from .output import complain
from .program import WRONG, app


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(help="dynamics | collision | contact | step")],
) -> None:
    """Measure Carom's speed on this machine, and its peers'; arguments after SUITE are those of `python -m bench.run`.

    For example: carom bench step --scene pool_break --rounds 1
    """
    try:
        run = import_module("...bench.run", __package__)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("carom"):
            raise
        complain("the benchmarks are not part of an installed carom: clone the repository, pip install -e '.[dev]'")
        raise typer.Exit(WRONG) from None
    raise typer.Exit(run.main([suite, *context.args]))
