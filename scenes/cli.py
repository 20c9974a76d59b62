"""The command line, one function a command. What needs jax is imported inside: `carom --help` answers at once."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from ..engine.model import Model, Topology
    from .library.facts import Entry
    from .library.playing import Outcome, Played
    from .spec import SceneSpec

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Carom's scenes, from a shell.")
console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 200)


def main() -> None:
    app()


@app.command("list")
def list_scenes() -> None:
    """List the scenes of the library, one line each."""
    from .library.registry import SCENES

    _print_table("", "", rows=((name, entry.description) for name, entry in SCENES.items()))


SceneName = Annotated[str, typer.Argument(help="a scene of the library; `carom list` names them")]
Dtype = Annotated[str, typer.Option(help="f32 | f64; default: f64 on a CPU, f32 elsewhere")]


@app.command()
def run(
    scene: SceneName,
    duration: Annotated[float | None, typer.Option(help="how long to run, in seconds")] = None,
    frame_dt: Annotated[float | None, typer.Option(help="time between recorded frames, in seconds")] = None,
    max_dt: Annotated[float | None, typer.Option(help="longest step, in seconds")] = None,
    scheme: Annotated[str | None, typer.Option(help="exact | rk4 | lie_midpoint | semi_implicit")] = None,
    law: Annotated[str | None, typer.Option(help="of impacts: stronge | poisson | newton | ...")] = None,
    impacts: Annotated[str | None, typer.Option(help="several at one instant: sequential | simultaneous")] = None,
    time_control: Annotated[str, typer.Option(help="rollback, to the times of impact | fixed steps")] = "rollback",
    dtype: Dtype = "",
    out: Annotated[Path | None, typer.Option(help="write t, q, v of all frames to this .npz file")] = None,
) -> None:
    """Run a scene and print its energy over time, its impacts and what it took.

    What is left out is as the library plays the scene: see `carom check SCENE`.

    For example: carom run bouncing_ball --duration 3 --out bounces.npz
    """
    import numpy as np

    from ..engine.results import SimulationError
    from ..integrators.rollout import rollout
    from .compile import compile_scene
    from .library.playing import Played

    dtype = _precision(dtype)
    entry = _entry(scene)
    given = {"duration": duration, "frame_dt": frame_dt, "max_dt": max_dt, "scheme": scheme, "law": law}
    given |= {"impacts": impacts, "time_control": time_control}
    keywords = entry.play.keywords | {name: value for name, value in given.items() if value is not None}
    spec = entry.build(**entry.play.parameters)
    start = time.perf_counter()
    with console.status("compiling and running"):
        model, state = compile_scene(spec)
        try:
            played = Played(spec, model, state, rollout(model, state, **keywords))
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        except SimulationError as error:
            console.print(f"{scene}: {error}", style="red")
            raise typer.Exit(1) from None
        kinetic, potential = played.energies
    seconds = time.perf_counter() - start

    frames = len(played.t)
    shown = np.unique(np.linspace(0, frames - 1, min(frames, 11)).round().astype(int))
    columns = (played.t, kinetic, potential, played.energy)
    rows = (tuple(f"{column[i]:.6g}" for column in columns) for i in shown)
    _print_table("t [s]", "kinetic [J]", "potential [J]", "total [J]", rows=rows)
    console.print(_took(played))
    console.print(
        f"{scene}: {frames} frames, {dtype}, {keywords['scheme']}; {seconds:.1f} s with compilation", style="bold"
    )
    if out is not None:
        np.savez(out, t=played.t, q=played.q, v=played.v)
        console.print(f"wrote {out}")


def _took(played: Played) -> str:
    """A line on the impacts and the steps of a run."""
    stats, times = played.result.stats, played.event("t")
    when = f", from {times[0]:.6g} to {times[-1]:.6g} s" if len(times) else ""
    return (
        f"{int(stats.impacts)} impacts{when}; {int(stats.ticks)} steps, {int(stats.rollbacks)} of them taken back; "
        f"{int(stats.resting)} times a contact rested; overlap at most {float(stats.max_penetration):.2g}"
    )


@app.command()
def check(
    scenes: Annotated[list[str] | None, typer.Argument(help="scenes of the library")] = None,
    everything: Annotated[bool, typer.Option("--all", help="all scenes that promise something")] = False,
    dtype: Dtype = "f64",
) -> None:
    """Play scenes and compare what comes of it with what theory or a publication says.

    Exits with 1 where a fact does not hold.  For example: carom check bouncing_ball multi_04
    """
    from .library.playing import outcomes
    from .library.registry import SCENES

    if everything == bool(scenes):
        raise typer.BadParameter("name some scenes, or give --all")
    _precision(dtype)
    names = [name for name, entry in SCENES.items() if entry.facts] if everything else list(scenes or ())
    entries = {name: _entry(name) for name in names}
    held = total = 0
    for name, entry in entries.items():
        if not entry.facts:
            console.print(f"{name} promises nothing", style="bold")
            continue
        plays = outcomes(entry)
        for number in range(len(entry.plays)):
            with console.status(
                f"{name}, play {number + 1} of {len(entry.plays)}; {held} of {total} facts held so far"
            ):
                way, found, failure = next(plays)
            console.print(f"{name}{': ' * bool(way.title)}{way.title}", style="bold")
            _print_table("", "fact", "expected", "found", "off by", "allowed", "by", rows=map(_row, found))
            if failure:
                console.print(f"{name}: {failure}", style="red")
            held += sum(outcome.holds for outcome in found)
            total += len(found)
    console.print(f"{held} of {total} facts hold in {len(entries)} scenes", style="bold" if held == total else "red")
    if held < total:
        raise typer.Exit(1)


def _row(outcome: Outcome) -> tuple[str, ...]:
    fact, found = outcome.fact, outcome.found
    off = f"{abs(found - fact.expected):.1e}"
    return (
        "ok" if outcome.holds else "FAILS", fact.says, f"{fact.expected:.12g}", f"{found:.12g}", off,
        f"{fact.tolerance:.1e}", fact.source,
    )  # fmt: skip


def _precision(dtype: str) -> str:
    """Sets what jax computes in, and where it keeps compiled programs; f32 or f64."""
    import jax

    dtype = dtype or ("f64" if jax.default_backend() == "cpu" else "f32")
    if dtype not in ("f32", "f64"):
        raise typer.BadParameter(f"{dtype!r} is unknown: give f32 or f64", param_hint="--dtype")
    jax.config.update("jax_enable_x64", dtype == "f64")
    if not jax.config.jax_compilation_cache_dir:  # pyright: ignore[reportAttributeAccessIssue]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "carom" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(cache))  # the second run of a scene starts at once
    return dtype


@app.command()
def info(scene: SceneName) -> None:
    """Describe a scene: its links, joints and degrees of freedom, how they are grouped, which shapes may touch, and
    for how many near pairs collision detection has room."""
    from .compile import compile_scene

    spec = _loaded(scene)
    model, _ = compile_scene(spec)
    topology = model.topology
    console.print(f"{scene}: {topology.n_links} links, nq {topology.nq}, nv {topology.nv}", style="bold")
    _print_table("link", "parent", "joint", "q", "v", "mass [kg]", "shapes", rows=_links(model))

    console.print(f"{len(topology.groups)} groups of equal depth and joint, one vectorised call each", style="bold")
    for group in topology.groups:
        console.print(f"  depth {group.depth}: {group.n} {group.joint}")

    rows = list(_pairs(topology))
    console.print(f"{len(topology.pairs)} pairs of shapes may touch", style="bold")
    if rows:
        _print_table("kinds", "pairs", "looked at", "points a pair", rows=rows)


def _loaded(scene: str) -> SceneSpec:
    return _entry(scene).build()


def _entry(scene: str) -> Entry:
    from .library.registry import library_entry

    try:
        return library_entry(scene)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _links(model: Model) -> Iterable[tuple[str, ...]]:
    """A row for the world if it carries shapes, then one for each link."""
    topology = model.topology
    shapes = {link: Counter[str]() for link in range(-1, topology.n_links)}
    for kind, link in zip(topology.shape_kinds, topology.shape_links, strict=True):
        shapes[link][kind] += 1
    carried = {link: ", ".join(f"{n} {kind}" for kind, n in count.items()) for link, count in shapes.items()}
    if carried[-1]:
        yield "world", "", "", "", "", "", carried[-1]
    for i, (name, parent, joint) in enumerate(zip(topology.names, topology.parents, topology.joints, strict=True)):
        above = "world" if parent < 0 else topology.names[parent]
        q, v = (_span(start[i], start[i + 1]) for start in (topology.q_start, topology.v_start))
        yield name, above, joint, q, v, f"{model.mass[i]:.4g}", carried[i]


def _pairs(topology: Topology) -> Iterable[tuple[str, ...]]:
    """A row for each pair of kinds: how many there are, how many can be looked at, in how many points."""
    from ..collision.broad import plan
    from ..collision.narrow import KERNELS, ordered

    count, room = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for group in plan(topology).groups:
        kinds = ordered(*group.kinds)[0]
        count[kinds] += group.n
        room[kinds] += group.capacity
    for kinds, n in sorted(count.items()):
        points = f"up to {KERNELS[kinds].rows}" if kinds in KERNELS else "by the FCL backend only"
        yield " - ".join(kinds), str(n), "every pair" if room[kinds] >= n else f"up to {room[kinds]} near ones", points


def _span(start: int, stop: int) -> str:
    return "" if start == stop else str(start) if stop == start + 1 else f"{start}-{stop - 1}"


def _print_table(*headers: str, rows: Iterable[tuple[str, ...]]) -> None:
    """Columns two blanks apart."""
    table = Table(*headers, box=None, show_header=any(headers), pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*row)
    console.print(table)
