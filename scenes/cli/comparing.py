"""`carom compare`: one scene under several laws of impact."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Dtype, Json, SceneName, blame_line, open_source, precision, target
from .output import emit, err, say
from .program import app


@app.command()
def compare(
    scene: SceneName,
    laws: Annotated[str, typer.Option(help="of impacts, with commas between")] = "newton,poisson,stronge",
    time: Annotated[
        float | None, typer.Option(help="how long to run, in seconds; default: 2, or the time of a library scene")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="draw them to this .png, .svg or .pdf file")] = None,
    dtype: Dtype = "",
    as_json: Json = False,
) -> None:
    """Run a scene under several laws of impact and show the energy, the end and the first difference of each.

    For example: carom compare pool_break --laws newton,stronge --out laws.png
    """
    from ..regression.compare import compare_laws

    if out is not None:
        target(out, (".png", ".svg", ".pdf"))
    precision(dtype)
    source = open_source(scene)
    keywords = source.keywords | ({} if time is None else {"duration": time})
    keywords.pop("law", None)
    names = tuple(name.strip() for name in laws.split(",") if name.strip())
    with err.status(f"running {source.name} under {', '.join(names)}"), blame_line(scene):
        comparison = compare_laws(source.spec, names, title=source.name, **keywords)
        table = comparison.table()
        if out is not None:
            comparison.plot(out)
    if as_json:
        emit({"scene": source.name, "columns": table.columns, "rows": table.rows})
        return
    say(str(table))
    if out is not None:
        say(f"wrote {out}")
