"""`carom check`: scenes of the library against known facts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Dtype, Json, precision
from .output import emit, err, say, table
from .program import FAILED, app

if TYPE_CHECKING:
    from ..library.playing import Outcome


@app.command()
def check(
    scenes: Annotated[list[str] | None, typer.Argument(help="scenes of the library")] = None,
    everything: Annotated[bool, typer.Option("--all", help="all scenes that promise something")] = False,
    dtype: Dtype = "f64",
    as_json: Json = False,
) -> None:
    """Play scenes and compare the results with theory or publications.

    Exits with 1 if a fact does not hold.  For example: carom check bouncing_ball multi_04
    """
    from ..library.playing import outcomes
    from ..library.registry import CHAINS, SCENES, library_entry

    if everything == bool(scenes):
        raise typer.BadParameter("name some scenes, or give --all")
    files = [name for name in scenes or () if Path(name).suffix]
    if files:
        raise typer.BadParameter(f"{files[0]} is a file: only scenes of the library promise facts; run it by carom run")
    precision(dtype)
    names = [name for name, entry in (SCENES | CHAINS).items() if entry.facts] if everything else list(scenes or ())
    entries = {name: library_entry(name) for name in names}
    passed = total = 0
    results: list[dict[str, Any]] = []
    for name, entry in entries.items():
        if not (entry.facts or as_json):
            say(f"{name} promises nothing", style="bold")
        plays = outcomes(entry) if entry.facts else iter(())
        for number in range(len(entry.plays) if entry.facts else 0):
            where = f"{name}, play {number + 1} of {len(entry.plays)}; {passed} of {total} facts held so far"
            with err.status(where):
                way, of_play, failure = next(plays)
            passed += sum(outcome.holds for outcome in of_play)
            total += len(of_play)
            if as_json:
                facts = [_text(outcome) for outcome in of_play]
                results.append({"scene": name, "play": way.title, "facts": facts, "failure": failure})
                continue
            say(f"{name}{': ' * bool(way.title)}{way.title}", style="bold")
            table("", "fact", "expected", "found", "off by", "allowed", "source", rows=map(_row, of_play))
            if failure:
                say(f"{name}: {failure}", style="red")
    if as_json:
        emit({"held": passed, "facts": total, "plays": results})
    else:
        say(f"{passed} of {total} facts hold in {len(entries)} scenes", style="bold" if passed == total else "red")
    if passed < total:
        raise typer.Exit(FAILED)


def _row(outcome: Outcome) -> tuple[str, ...]:
    fact, found = outcome.fact, outcome.found
    off = f"{abs(found - fact.expected):.1e}"
    return (
        "ok" if outcome.holds else "FAILS", fact.says, f"{fact.expected:.12g}", f"{found:.12g}", off,
        f"{fact.tolerance:.1e}", fact.source,
    )  # fmt: skip


def _text(outcome: Outcome) -> dict[str, Any]:
    fact = outcome.fact
    found = outcome.found if outcome.found == outcome.found else None
    return {
        "fact": fact.says, "expected": fact.expected, "found": found, "tolerance": fact.tolerance,
        "source": fact.source, "holds": outcome.holds,
    }  # fmt: skip
