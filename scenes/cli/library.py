"""`carom list`, `carom info`: the scenes of the library and their contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .options import Json, Robot, SceneName, blame_line, open_source, precision
from .output import emit, say, table
from .program import app

if TYPE_CHECKING:
    from ...engine.model import Model
    from ...engine.topology import Topology


@app.command("list")
def list_scenes(as_json: Json = False) -> None:
    """List the scenes of the library, one line each."""
    from ..library.registry import CHAINS, SCENES

    known = SCENES | CHAINS
    if as_json:
        emit([{"name": name, "description": e.description, "facts": len(e.facts)} for name, e in known.items()])
        return
    table("", "", rows=((name, entry.description) for name, entry in known.items()))


@app.command()
def info(scene: SceneName, robot: Robot = None, as_json: Json = False) -> None:
    """Describe a scene: its links, joints and degrees of freedom, their groups, the pairs of shapes that may touch, the
    capacity for near pairs, and how it runs on this machine's devices. For a robot's file, also the report of its
    import. For a planar chain, its joints and grounds."""
    from ...integrators.snapshots import model_hash
    from ..chains.spec import ChainSpec
    from ..compile import compile_scene
    from .chains import tell_chain

    precision("f64")
    source = open_source(scene, robot)
    if isinstance(source.spec, ChainSpec):
        tell_chain(source.name, source.spec, as_json)
        return
    with blame_line(scene):
        model, _ = compile_scene(source.spec)
    topology = model.topology
    links, pairs = list(_links(model)), list(_pairs(topology))
    if as_json:
        columns = ("link", "parent", "joint", "q", "v", "mass", "shapes")
        report = None if source.report is None else [item._asdict() for item in source.report.items]
        emit({
            "scene": source.name, "links": topology.n_links, "nq": topology.nq, "nv": topology.nv,
            "pairs": len(topology.pairs), "model_hash": model_hash(model), "report": report,
            "devices": [{"kind": kind, "count": count, "runs": runs} for kind, count, runs in _devices()],
            "table": [dict(zip(columns, row, strict=True)) for row in links],
        })  # fmt: skip
        return
    say(f"{source.name}: {topology.n_links} links, nq {topology.nq}, nv {topology.nv}", style="bold")
    table("link", "parent", "joint", "q", "v", "mass [kg]", "shapes", rows=links)
    say(f"{len(topology.groups)} groups of equal depth and joint, one vectorised call each", style="bold")
    for group in topology.groups:
        say(f"  depth {group.depth}: {group.n} {group.joint}")
    for kind, count, runs in _devices():
        say(f"on {kind if count == 1 else f'{count} x {kind}'} it runs as {runs}")
    say(f"{len(topology.pairs)} pairs of shapes may touch", style="bold")
    if pairs:
        table("kinds", "pairs", "looked at", "points a pair", rows=pairs)


def _devices() -> list[tuple[str, int, str]]:
    """Each kind of device of jax here: its name, count, and the form in which programs run."""
    import jax

    from ...engine.native.paths import path_on

    count = Counter((d.device_kind, d.platform) for d in jax.devices())
    return [(kind, n, path_on("cuda" if platform == "gpu" else platform)) for (kind, platform), n in count.items()]


def _links(model: Model) -> Iterable[tuple[str, ...]]:
    """A row for the world if it carries shapes, then one for each link."""
    topology = model.topology
    shapes = {link: Counter[str]() for link in range(-1, topology.n_links)}
    for kind, link in zip(topology.shape_kinds, topology.shape_links, strict=True):
        shapes[link][kind] += 1
    shapes_of = {link: ", ".join(f"{n} {kind}" for kind, n in count.items()) for link, count in shapes.items()}
    if shapes_of[-1]:
        yield "world", "", "", "", "", "", shapes_of[-1]
    for i, (name, parent, joint) in enumerate(zip(topology.names, topology.parents, topology.joints, strict=True)):
        above = "world" if parent < 0 else topology.names[parent]
        q, v = (_span(start[i], start[i + 1]) for start in (topology.q_start, topology.v_start))
        yield name, above, joint, q, v, f"{model.mass[i]:.4g}", shapes_of[i]


def _pairs(topology: Topology) -> Iterable[tuple[str, ...]]:
    """A row for each pair of kinds: number of pairs, capacity for near ones, contact points of each."""
    from ...collision.broad import pair_plan
    from ...collision.narrow import KERNELS, kernel_key

    count, room = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for group in pair_plan(topology).groups:
        kinds: tuple[str, str] = kernel_key(*group.kinds)[0]
        count[kinds] += group.n
        room[kinds] += group.capacity
    for kinds, n in sorted(count.items()):
        points = f"up to {KERNELS[kinds].rows}" if kinds in KERNELS else "by the FCL backend only"
        yield " - ".join(kinds), str(n), "every pair" if room[kinds] >= n else f"up to {room[kinds]} near ones", points


def _span(start: int, stop: int) -> str:
    return "" if start == stop else str(start) if stop == start + 1 else f"{start}-{stop - 1}"
