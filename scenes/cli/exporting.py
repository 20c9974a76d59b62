"""`carom export`: a scene as a file to edit, or as a world that needs no Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Robot, SceneName, blame_line, open_source, precision, target
from .output import err, say
from .program import app
from .worlds import add_triggers, pool_of, shape_of


@app.command()
def export(
    scene: SceneName,
    out: Annotated[Path | None, typer.Argument(help="a .toml file; none: print it")] = None,
    library: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="write a C library there instead, and its header")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write an .html file instead, which simulates in a browser")
    ] = None,
    name: Annotated[str, typer.Option(help="of the library's functions; default: the scene's")] = "",
    targets: Annotated[
        list[str] | None,
        typer.Option("--target", help="x86_64-linux, aarch64-android ...; repeatable; default: this machine"),
    ] = None,
    cpu: Annotated[
        str | None, typer.Option(help="least processor of the targets, by LLVM's name: x86-64-v2 ...")
    ] = None,
    dtype: Annotated[str, typer.Option(help="f32 | f64, of a library or a page")] = "f32",
    dt: Annotated[float, typer.Option(help="usual length of a frame [s]")] = 1 / 60,
    law: Annotated[str, typer.Option(help="of impacts")] = "stronge",
    max_contacts: Annotated[int | None, typer.Option(help="room for contacts; default: twice what is usual")] = None,
    pool: Annotated[
        list[str] | None, typer.Option(metavar="BODY=N", help="spare bodies like a free one of the scene; repeatable")
    ] = None,
    probes: Annotated[
        list[str] | None,
        typer.Option(
            "--probe", metavar="SHAPE", help="to ask what it overlaps: sphere:0.1, box:0.1,0.2,0.3 ...; repeatable"
        ),
    ] = None,
    triggers: Annotated[
        list[str] | None,
        typer.Option(
            "--trigger", metavar="SHAPE@X,Y,Z[@BODY]", help="tells who is in it; carried by a body, or not; repeatable"
        ),
    ] = None,
    robot: Robot = None,
) -> None:
    """Write a scene as a TOML file, to read, change and run (docs/scenes.md describes the format), as a library for
    programs in C and languages that call C, or as a page to play with in a browser (docs/export.md).

    Joints that can be cut are the scene's loops with `active`.

    For example: carom export pool_break mine.toml; carom export pool_break --library out --page game.html;
    carom export bouncing_ball --library out --pool ball=8 --probe sphere:0.5 --trigger box:1,1,0.1@0,0,0
    """
    if library is not None or page is not None:
        if out is not None:
            raise typer.BadParameter(f"leave out {out}, or --library and --page: they write no .toml", param_hint="OUT")
        shapes = [shape_of(one) for one in probes or ()]
        live = {"dt": dt, "law": law, "max_contacts": max_contacts, "pool": pool_of(pool or ()), "probes": shapes}
        _world(scene, library, page, name, targets or (), cpu, dtype, robot, live, triggers or ())
        return
    from ..formats.toml import write_toml
    from ..formats.toml_writing import to_toml

    if out is None:
        print(to_toml(open_source(scene, robot).spec), end="")
        return
    target(out, (".toml",), "OUT")
    write_toml(open_source(scene, robot).spec, out)
    say(f"wrote {out}")


def _world(
    scene: str,
    folder: Path | None,
    page: Path | None,
    name: str,
    targets: Sequence[str],
    cpu: str | None,
    dtype: str,
    robot: Sequence[str] | None,
    live: dict[str, Any],
    triggers: Sequence[str],
) -> None:
    from ..export.library import export_library
    from ..export.page import export_page
    from ..live.world import Live

    if page is not None:
        target(page, (".html",), "--page")
    used = precision(dtype)
    source, written = open_source(scene, robot), []
    with blame_line(scene):
        world = Live(source.spec, dtype=f"float{used[1:]}", warm=False, **live)
        add_triggers(world, triggers)
    with err.status("compiling"):
        if folder is not None:
            written += export_library(world, folder, name=name or source.name, targets=targets, cpu=cpu)
        if page is not None:
            export_page(world, page, title=name or source.name)
            written.append(page)
    say(f"wrote {', '.join(map(str, written))}")
