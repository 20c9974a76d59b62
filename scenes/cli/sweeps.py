"""`carom sweep`: many lanes of a scene in shards, to one file of quantities; a killed sweep can be resumed."""

from __future__ import annotations

import contextlib
import time as clock
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Dtype, Json, Robot, SceneName, blame_line, open_source, precision, target
from .output import emit, err, note, say, table
from .program import app

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from ..sweeps.result import Sweep
    from ..sweeps.shards import SweepProgress
    from .interrupts import Gently

EVERY = 5.0  # [s] between lines of progress, where there is no bar
DESIGNS = (".csv", ".parquet")


@app.command()
def sweep(
    scene: SceneName,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH=SPEC|FILE",
            help="uniform(a, b), normal(mean, sd), loguniform(a, b), choice(a, b, c); linspace(a, b, n) or a, b, c, "
            "which are grids; or a .csv or .parquet file with a column for each path; repeatable",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="a .parquet, .csv or .npz file")] = Path("sweep.npz"),
    lanes: Annotated[
        int | None, typer.Option(help="how many runs; default: as many as the grid or the file has", min=1)
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="what to keep of each lane: code, first_impact, impacts, energy, loss, overlap, ticks, rollbacks, "
            "resting, t, q, v, max_speed, at_rest, position.BODY; repeatable"
        ),
    ] = None,
    time: Annotated[
        float | None, typer.Option(help="how long to run, in seconds; default: 2, or the time of a library scene")
    ] = None,
    frame_dt: Annotated[float | None, typer.Option(help="time between frames, in seconds")] = None,
    max_dt: Annotated[float | None, typer.Option(help="longest step, in seconds")] = None,
    window: Annotated[float | None, typer.Option(help="shortest step for the sake of impacts, in seconds")] = None,
    scheme: Annotated[str | None, typer.Option(help="exact | rk4 | lie_midpoint | semi_implicit")] = None,
    law: Annotated[str | None, typer.Option(help="of impacts: stronge | poisson | newton | ...")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="change a number in all lanes; repeatable")
    ] = None,
    seed: Annotated[int, typer.Option(help="of the random values", min=0)] = 0,
    shard: Annotated[int | None, typer.Option(help="lanes run at once, and lost by a kill at most", min=1)] = None,
    part: Annotated[
        str, typer.Option(metavar="K/N", help="run every N-th shard from the K-th on, K from 0; see docs/batches.md")
    ] = "",
    on: Annotated[str, typer.Option(help="dask: processes of this machine; or the address of a scheduler")] = "",
    workers: Annotated[int | None, typer.Option(help="processes of --on dask", min=1)] = None,
    robot: Robot = None,
    dtype: Dtype = "",
    as_json: Json = False,
) -> None:
    """Run many lanes of a scene with varied numbers, and keep quantities of each in one file.

    Finished shards are kept in OUT.parts: after Ctrl-C or a kill the same command resumes the sweep. The result is the
    same, bit by bit, and does not depend on the shards' size; random values depend on --seed and the lane alone.

    Examples:

    carom sweep bouncing_ball --vary "body.ball.restitution=uniform(0.1, 0.95)" --lanes 2000 --out balls.parquet

    carom sweep bouncing_ball --vary "body.ball.restitution=linspace(0.5, 0.9, 5)" --vary "gravity.2=-9.81, -1.62"

    carom sweep scene.toml --vary design.csv --measure impacts --measure position.ball --time 5 --on dask --workers 8
    """
    from ..formats.settings import apply_setting, parse_setting, split_setting
    from ..sweeps.measures import DEFAULT
    from ..sweeps.result import SUFFIXES, read_design
    from ..sweeps.shards import sweep as run

    varied, design = {}, {}
    for text in vary or ():
        if "=" not in text and text.lower().endswith(DESIGNS):
            columns = read_design(text)
        else:
            columns = dict([split_setting(text, "'body.ball.restitution=uniform(0.1, 0.9)', or the name of a file")])
        for path in columns.keys() & {*varied, *design}:
            raise typer.BadParameter(f"{path} is varied twice: leave one out", param_hint="--vary")
        (design if "=" not in text else varied).update(columns)
    source = open_source(scene, robot)
    target(out, SUFFIXES)
    used = precision(dtype)
    spec = source.spec
    for path, value in map(parse_setting, settings or ()):
        spec = apply_setting(spec, path, value)
    given = {"duration": time, "frame_dt": frame_dt, "max_dt": max_dt, "window": window, "scheme": scheme, "law": law}
    keywords = source.keywords | {name: value for name, value in given.items() if value is not None}
    blame = blame_line(scene) if not (settings or vary) else contextlib.nullcontext()
    share = _share(part)
    with _progress_bar(source.name, out) as report, blame:
        result = run(
            spec, vary=varied, design=design, lanes=lanes, measure=measure or DEFAULT, out=out, shard=shard, seed=seed,
            part=share, on=on or None, workers=workers, progress=report, **keywords,
        )  # fmt: skip
    for path in result.compiled:
        note(f"{path} sets more than one number of the model: each of its values was compiled")
    files = [str(out)] if share is None else []
    summed = {"scene": source.name, "dtype": used, "lanes": len(result), **report.took, "measures": _summary(result)}
    if as_json:
        emit({**summed, "file": next(iter(files), None)})
        return
    table("", "mean", "sd", "least", "median", "most", rows=_rows(summed["measures"]))
    here = f", {report.took['rate']:.4g} lanes/s" if report.took["rate"] else ""
    say(f"{source.name}: {len(result)} lanes, {report.took['lanes_here']} of them now{here}", style="bold")
    say(f"wrote {out}" if files else f"shards {part} are in {out}.parts; the command without --part puts all together")


class _Report:
    """The callback after each shard; from the first shard on, Ctrl-C ends the program and keeps finished shards."""

    def __init__(self, name: str, bar: Bar, interrupts: Gently) -> None:
        self._name, self._bar, self._interrupts = name, bar, interrupts
        self._task = bar.add_task(f"{name}: starting", total=None)
        self._said, self._started = clock.perf_counter(), clock.perf_counter()
        self.shards, self._here, self._rate = 0, 0, None

    def __call__(self, progress: SweepProgress) -> None:
        self._interrupts.begin()
        self.shards += 1
        self._here, self._rate = progress.here, progress.rate
        words = f"{progress.done} of {progress.lanes} lanes"
        if progress.rate and progress.left is not None:
            words += f", {progress.rate:.4g} lanes/s, {_time(progress.left)} left"
        self._bar.update(self._task, total=progress.lanes, completed=progress.done, description=words)
        now = clock.perf_counter()
        if not err.is_terminal and (now - self._said > EVERY or self.shards == 1 or progress.done == progress.lanes):
            self._said = now
            err.print(f"{self._name}: {words}")

    @property
    def took(self) -> dict[str, Any]:
        seconds = round(clock.perf_counter() - self._started, 3)
        return {"lanes_here": self._here, "seconds": seconds, "rate": self._rate}


@contextlib.contextmanager
def _progress_bar(name: str, out: Path) -> Iterator[_Report]:
    """Show a bar, which is removed at the end, or lines without a terminal."""
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from .interrupts import gently

    columns = (SpinnerColumn(), BarColumn(bar_width=30), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=err, transient=True, disable=not err.is_terminal) as bar, gently() as interrupts:
        report = _Report(name, bar, interrupts)
        try:
            yield report
        except KeyboardInterrupt:
            note(f"interrupted: {out}.parts has what there was; the same command goes on")
            raise


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _share(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    first, slash, step = text.partition("/")
    if not (slash and first.isdecimal() and step.isdecimal() and int(first) < int(step)):
        raise typer.BadParameter(f"{text!r} must be K/N, with K from 0 to N - 1", param_hint="--part")
    return int(first), int(step)


def _summary(result: Sweep) -> dict[str, Any]:
    """Summary of each measured column: statistics of its finite numbers; for codes the number of lanes with each."""
    import numpy as np

    statistics: dict[str, Any] = {}
    for name, x in result.columns().items():
        if name == "code":
            codes, counts = np.unique(x, return_counts=True)
            statistics[name] = {str(code): int(n) for code, n in zip(codes, counts, strict=True)}
        elif name.split(".")[0] in {m.split(".")[0] for m in result.measured} and x.dtype.kind in "bifu":
            some = x[np.isfinite(x)].astype(float)
            statistics[name] = {
                "lanes": len(some),
                **{key: float(f(some)) if len(some) else None for key, f in (
                    ("mean", np.mean), ("sd", np.std), ("least", np.min), ("median", np.median), ("most", np.max)
                )},
            }  # fmt: skip
    return statistics


def _rows(measures: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, row in measures.items():
        if name == "code":
            from ...engine.results import Code

            yield "code", ", ".join(f"{n} {Code(int(code)).name}" for code, n in row.items()), "", "", "", ""
        else:
            cells = (row[key] for key in ("mean", "sd", "least", "median", "most"))
            yield name, *("" if x is None else f"{x:.6g}" for x in cells)
