"""The command line, one function a command. What needs jax is imported inside: `carom --help` answers at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from ..engine.model import Model

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Carom's scenes, from a shell.")
console = Console(markup=False, highlight=False)


def main() -> None:
    app()


@app.command("list")
def list_scenes() -> None:
    """List the scenes of the library, one line each."""
    from .library.registry import SCENES

    _print_table("", "", rows=((name, entry.description) for name, entry in SCENES.items()))


@app.command()
def info(scene: Annotated[str, typer.Argument(help="a scene of the library; `carom list` names them")]) -> None:
    """Describe a scene: its links, joints and degrees of freedom, how they are grouped, which shapes may touch."""
    from .compile import compile_scene
    from .sources import load

    try:
        spec = load(scene)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    model, _ = compile_scene(spec)
    topology = model.topology
    console.print(f"{scene}: {topology.n_links} links, nq {topology.nq}, nv {topology.nv}", style="bold")
    _print_table("link", "parent", "joint", "q", "v", "mass [kg]", "shapes", rows=_links(model))

    console.print(f"{len(topology.groups)} groups of equal depth and joint, one vectorised call each", style="bold")
    for group in topology.groups:
        console.print(f"  depth {group.depth}: {group.n} {group.joint}")

    console.print(f"{len(topology.pairs)} pairs of shapes may touch", style="bold")
    kinds = Counter(" - ".join(sorted(topology.shape_kinds[shape] for shape in pair)) for pair in topology.pairs)
    for kind, count in kinds.most_common():
        console.print(f"  {count} {kind}")


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


def _span(start: int, stop: int) -> str:
    return "" if start == stop else str(start) if stop == start + 1 else f"{start}-{stop - 1}"


def _print_table(*headers: str, rows: Iterable[tuple[str, ...]]) -> None:
    """Columns two blanks apart."""
    table = Table(*headers, box=None, show_header=any(headers), pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*row)
    console.print(table)
