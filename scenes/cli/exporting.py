"""`carom export`: a scene as a file to change, or as a world that needs no Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Robot, SceneName, blamed, opened, precision, target
from .output import err, say
from .program import app


@app.command()
def export(
    scene: SceneName,
    out: Annotated[Path | None, typer.Argument(help="a .toml file; none: print it")] = None,
    library: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="write a C library there instead, and its header")
    ] = None,
    name: Annotated[str, typer.Option(help="of the library's functions; default: the scene's")] = "",
    targets: Annotated[
        list[str] | None,
        typer.Option("--target", help="x86_64-linux, aarch64-android ...; repeatable; default: this machine"),
    ] = None,
    cpu: Annotated[
        str | None, typer.Option(help="least processor of the targets, by LLVM's name: x86-64-v2 ...")
    ] = None,
    dtype: Annotated[str, typer.Option(help="f32 | f64, of a library")] = "f32",
    dt: Annotated[float, typer.Option(help="usual length of a frame [s]")] = 1 / 60,
    law: Annotated[str, typer.Option(help="of impacts")] = "stronge",
    max_contacts: Annotated[int | None, typer.Option(help="room for contacts; default: twice what is usual")] = None,
    robot: Robot = None,
) -> None:
    """Write a scene as a TOML file, to read, change and run (docs/scenes.md describes the format), or as a library for
    programs in C and what calls C (docs/export.md).

    For example: carom export pool_break mine.toml; carom export pool_break --library out
    """
    if library is not None:
        _library(
            scene, library, name, targets or (), cpu, dtype, robot, {"dt": dt, "law": law, "max_contacts": max_contacts}
        )
        return
    from ..formats.toml import write_toml
    from ..formats.toml_writing import to_toml

    if out is None:
        print(to_toml(opened(scene, robot).spec), end="")
        return
    target(out, (".toml",))
    write_toml(opened(scene, robot).spec, out)
    say(f"wrote {out}")


def _library(
    scene: str, folder: Path, name: str, targets: Any, cpu: str | None, dtype: str, robot: Any, live: dict[str, Any]
) -> None:
    from ..export.library import export_library

    used = precision(dtype)
    found = opened(scene, robot)
    with err.status("compiling"), blamed(scene):
        written = export_library(
            found.spec, folder, name=name or found.name, targets=targets, cpu=cpu, dtype=f"float{used[1:]}", **live
        )
    say(f"wrote {', '.join(map(str, written))}")
