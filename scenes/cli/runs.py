"""`carom run`: run a scene, or a batch of its variations, to a recording, a picture and a page."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Dtype, Json, Robot, SceneName, blame_line, open_source, precision, target
from .output import emit, note, say
from .program import app
from .progress import progress_bar
from .summary import print_summary, summary

if TYPE_CHECKING:
    from ..recordings.recording import Recording


@app.command()
def run(
    scene: SceneName,
    time: Annotated[float | None, typer.Option(help="how long to run, in seconds; at most ten million frames")] = None,
    frame_dt: Annotated[float | None, typer.Option(help="time between recorded frames, in seconds")] = None,
    max_dt: Annotated[
        float | None, typer.Option(help="longest step, in seconds; at least a millionth of --frame-dt")
    ] = None,
    window: Annotated[
        float | None, typer.Option(help="shortest step for the sake of impacts, in seconds; at least 1e-9")
    ] = None,
    scheme: Annotated[str | None, typer.Option(help="exact | rk4 | lie_midpoint | semi_implicit")] = None,
    law: Annotated[str | None, typer.Option(help="of impacts: stronge | poisson | newton | ...")] = None,
    impacts: Annotated[str | None, typer.Option(help="several at one instant: sequential | simultaneous")] = None,
    time_control: Annotated[str | None, typer.Option(help="rollback, to the times of impact | fixed steps")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="change a number of the scene; repeatable")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="number of lanes: runs side by side", min=1, max=1_000_000)] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH=LOW:HIGH", help="spread a number over the lanes, or PATH=a,b,c; repeatable"),
    ] = None,
    robot: Robot = None,
    dtype: Dtype = "",
    x64: Annotated[bool, typer.Option("--x64", help="the same as --dtype f64")] = False,
    out: Annotated[Path | None, typer.Option(help="of the recording; default: SCENE.npz in this folder")] = None,
    plot: Annotated[bool, typer.Option(help="draw the run, beside the recording (.png)")] = True,
    page: Annotated[bool, typer.Option(help="write a 3D page that opens in a browser, offline (.html)")] = True,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="in the page one may go on from any frame by simulation; takes a minute")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a scene; write a recording (.npz), a plot (.png) and a 3D page (.html), and print a summary.

    By default the options are those with which the library plays the scene. Files of the same name are replaced.
    Ctrl-C stops the run and keeps its results. Each --vary spreads evenly over the lanes: the first in their order, the
    others each in an order of its own.

    Examples:

    carom run pool_break

    carom run pool_break --time 10 --set pair.ball.ball.restitution=0.9 --out soft.npz

    carom run bouncing_ball --batch 100 --vary body.ball.restitution=0.1:0.9 --no-page

    carom run robot.urdf --robot floating --robot ground --time 5 --law newton --json
    """
    from ...engine.results import last_well, raise_for
    from ..chains.spec import refuse_chain
    from ..formats.settings import apply_setting, parse_setting
    from ..running import record

    if x64 and dtype not in ("", "f64"):
        raise typer.BadParameter(f"--x64 and --dtype {dtype} are not both possible: give one", param_hint="--x64")
    if vary and batch is None:
        raise typer.BadParameter("how many lanes? add --batch N", param_hint="--vary")
    if take_over and (batch is not None or not page):
        raise typer.BadParameter(
            "it is for the page of a single run: leave out --batch and --no-page", param_hint="--take-over"
        )
    changes = [parse_setting(text) for text in settings or ()]
    variations = _variations(vary or (), batch)
    source = open_source(scene, robot)
    if take_over:
        refuse_chain(source.spec, "--take-over")
    file = target(out or Path(f"{source.name}.npz"), (".npz",))
    for suffix in (".png",) * plot + (".html",) * page:
        target(file.with_suffix(suffix), (suffix,))
    used = precision("f64" if x64 else dtype)
    spec = source.spec
    for path, value in changes:
        spec = apply_setting(spec, path, value)
    given = {"duration": time, "frame_dt": frame_dt, "max_dt": max_dt, "scheme": scheme, "law": law}
    given |= {"impacts": impacts, "time_control": time_control, "window": window}
    keywords = source.keywords | {name: value for name, value in given.items() if value is not None}
    blame = blame_line(scene) if not (changes or variations) else contextlib.nullcontext()
    with progress_bar(source.name, batch) as progress, blame:
        try:
            recording = record(
                spec, file, title=source.name, lanes=batch, variations=variations, progress=progress, **keywords
            )
        except KeyboardInterrupt:
            note(f"interrupted: {file} has what there was" if progress.pieces else "interrupted: nothing was written")
            raise
    with progress.working("measuring and drawing"):
        result = summary(source.name, recording, progress, used)
        result["files"] = {"recording": str(file), **_pictures(recording, file, plot, page, take_over)}
    if as_json:
        emit(result)
    else:
        print_summary(result)
        say(f"wrote {', '.join(result['files'].values())}")
    with warnings.catch_warnings(record=True) as light:
        warnings.simplefilter("always")
        raise_for(recording.code, last_well(recording.t, recording.q, recording.v))
    for warning in light:
        note(f"{source.name}: {warning.message}")


def _variations(texts: Sequence[str], lanes: int | None) -> dict[str, list[Any]]:
    """Path -> a value for each lane. The first path is in order; each other one is in an order of its own, always the
    same, so that together they fill their box (a Latin hypercube)."""
    import numpy as np

    from ..formats.settings import variation_values

    variations: dict[str, list[Any]] = {}
    for number, text in enumerate(texts):
        path, values = variation_values(text, lanes or 1)
        if path in variations:
            raise typer.BadParameter(f"{path} is varied twice: leave one out", param_hint="--vary")
        order = np.random.default_rng(number).permutation(len(values)) if number else range(len(values))
        variations[path] = [values[k] for k in order]
    return variations


def _pictures(recording: Recording, out: Path, plot: bool, page: bool, take_over: bool) -> dict[str, str]:
    """The files that were drawn."""
    files = {}
    if plot:
        try:
            from ..show.plots import plot_run
        except ImportError as error:
            if (error.name or "").partition(".")[0] != "matplotlib":
                raise
            note("no plot: matplotlib is not installed (pip install 'carom[view]')")
        else:
            plot_run(recording, out.with_suffix(".png"))
            files["plot"] = str(out.with_suffix(".png"))
    if page and take_over:
        from ..export.page import export_page

        export_page(recording, out.with_suffix(".html"))
    elif page:
        from ..show.page import write_page

        write_page(recording, out.with_suffix(".html"))
    if page:
        files["page"] = str(out.with_suffix(".html"))
    return files
