"""`carom plot`, `carom view`, `carom replay`: commands for recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .interrupts import raise_it
from .options import Json, Robot, open_source, precision, target
from .output import emit, err, note, say
from .program import FAILED, app
from .progress import progress_bar

if TYPE_CHECKING:
    from ..recordings.recording import Recording

RecordingFile = Annotated[Path, typer.Argument(metavar="FILE", help="a recording (.npz), as `carom run` writes it")]


@app.command()
def plot(
    file: RecordingFile,
    kind: Annotated[str, typer.Option(help="run | energy | events | cone | motion | phase")] = "run",
    out: Annotated[Path | None, typer.Option(help="a .png, .svg or .pdf file; default: FILE.png")] = None,
) -> None:
    """Draw a recording.

    For example: carom plot pool_break.npz --kind energy --out energy.svg
    """
    from ..show import plots

    if kind not in plots.KINDS:
        raise typer.BadParameter(f"{kind!r} is unknown: give {', '.join(plots.KINDS)}", param_hint="--kind")
    default = file.with_name(f"{file.stem}{'' if kind == 'run' else f'-{kind}'}.png")
    path = target(out or default, (".png", ".svg", ".pdf"))
    recording = _read(file)
    with err.status(f"drawing {path}"):
        plots.plot(recording, kind, path)
    say(f"wrote {path}")


@app.command()
def view(
    source: Annotated[str, typer.Argument(metavar="FILE|SCENE", help="a recording (.npz), or a scene to run live")],
    port: Annotated[int, typer.Option(help="of the page in the browser", min=1, max=65535)] = 8080,
    export: Annotated[Path | None, typer.Option(help="write one HTML file instead, which opens offline")] = None,
    robot: Robot = None,
) -> None:
    """Show a recording or a live scene in the browser; Ctrl-C ends it.

    For example: carom view pool_break.npz --export pool_break.html
    """
    is_file = source.lower().endswith(".npz")
    if export is not None:
        from ..show.page import write_page

        target(export, (".html",), "--export")
        write_page(_read(Path(source)) if is_file else _record(source, robot), export)
        say(f"wrote {export}")
        return
    from ..view.viewer import view as show

    if not is_file:
        precision("")
    scene = _read(Path(source)) if is_file else open_source(source, robot).spec
    raise_it()
    show(scene, port=port)


@app.command()
def replay(file: RecordingFile, as_json: Json = False) -> None:
    """Run a recording's scene again and compare every frame and impact, bit by bit.

    Exits with 1 if one differs, and names it. Equal bits are promised on the same device, with the same versions.
    """
    from ..replaying import replay as again

    recording = _read(file)
    with progress_bar(f"replaying {recording.title}", recording.lanes) as progress:
        replayed = again(recording, progress)
    if as_json:
        emit({"same": replayed.same, **vars(replayed)})
    else:
        kept = "" if recording.complete else " (the run did not come to its end)"
        if replayed.same:
            say(f"{file}: {replayed.frames} frames and {replayed.events} impacts are the same, bit by bit{kept}")
        else:
            say(f"{file}: not the same{kept}: {replayed.difference}", style="red")
        for change in replayed.changed:
            note(f"  {change}")
    if not replayed.same:
        raise typer.Exit(FAILED)


def _read(file: Path) -> Recording:
    """Read a recording, with jax set to its precision."""
    from ..recordings.file import read_recording

    recording = read_recording(file)
    precision("f64" if recording.q.dtype.itemsize == 8 else "f32")
    return recording


def _record(scene: str, robot: list[str] | None) -> Recording:
    from ..running import record

    precision("")
    source = open_source(scene, robot)
    with progress_bar(source.name, None) as progress:
        return record(source.spec, title=source.name, progress=progress, **source.keywords)
