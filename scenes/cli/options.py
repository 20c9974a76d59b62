"""Arguments and options that several commands share, and their readers."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import note

if TYPE_CHECKING:
    from ..formats.report import ImportReport

SceneName = Annotated[
    str,
    typer.Argument(
        metavar="SCENE", help="a scene of the library (`carom list`), or a .toml, .urdf, .xacro or .xml file"
    ),
]
Dtype = Annotated[str, typer.Option(help="f32 | f64; default: f64 on a CPU, f32 elsewhere")]
Robot = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY[=VALUE]",
        help="how a robot's file is read: floating, lenient, mimic=free, drop=tendon ... (docs/robots.md); repeatable",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document, for programs")]


@dataclass(frozen=True)
class OpenSource:
    """An opened scene.  name: a short name.  spec: a SceneSpec or a ChainSpec.  keywords: those of its usual rollout.
    report: the report of an import."""

    name: str
    spec: Any
    keywords: dict[str, Any] = field(default_factory=dict)
    report: ImportReport | None = None


def open_source(source: str, robot: Sequence[str] | None = None) -> OpenSource:
    """Open a scene by name or file. Parts of a robot's file that were not read unchanged are noted on stderr.

    robot: the values of `--robot`.
    """
    from ..library.facts import Play
    from ..library.registry import CHAINS, SCENES, library_entry
    from ..sources import load

    if (source in SCENES or source in CHAINS) and not robot:
        entry = library_entry(source)
        return OpenSource(source, entry.build(**entry.play.parameters), entry.play.keywords)
    path, report = Path(source), None
    suffix = path.suffix.lower() if os.path.isfile(source) else ""
    if suffix in (".urdf", ".xacro"):
        from ..formats.urdf import import_urdf

        spec, report = import_urdf(source, **_keywords(robot, import_urdf))
    elif suffix in (".xml", ".mjcf"):
        from ..formats.mjcf import import_mjcf

        spec, report = import_mjcf(source, **_keywords(robot, import_mjcf))
    elif robot:
        raise typer.BadParameter(f"{source} is not the file of a robot: leave it out", param_hint="--robot")
    else:
        spec = load(source)
    if report is not None:
        note(f"{source}: {report.summary}")
        for item in (*report.of("approximated"), *report.of("ignored")):
            note(f"  {item.outcome} {item.what}{': ' * bool(item.why)}{item.why}")
    return OpenSource(path.stem, spec, Play().keywords, report)


def _keywords(robot: Sequence[str] | None, reader: Callable[..., object]) -> dict[str, Any]:
    """Keywords of a reader of robots: "floating" is True, and "drop=a,b" adds to a list."""
    keywords: dict[str, Any] = {}
    known = [name for name, p in inspect.signature(reader).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for text in robot or ():
        key, given, value = text.partition("=")
        if key not in known:
            raise typer.BadParameter(f"{key!r} is unknown: give {', '.join(known)}", param_hint="--robot")
        if key == "drop":
            keywords[key] = [*keywords.get(key, []), *value.split(",")]
        else:
            keywords[key] = value if given else True
    return keywords


@contextlib.contextmanager
def blame_line(source: str) -> Iterator[None]:
    """Add the line of a TOML scene to errors about it."""
    from ..compiling.check import SceneError
    from ..formats.toml import locate_error

    try:
        yield
    except SceneError as error:
        if not os.path.isfile(source):
            raise
        raise locate_error(source, error) from None


def precision(dtype: str) -> str:
    """Set jax's precision, f32 or f64, and its cache of compiled programs."""
    import jax

    dtype = dtype or ("f64" if jax.default_backend() == "cpu" else "f32")
    if dtype not in ("f32", "f64"):
        raise typer.BadParameter(f"{dtype!r} is unknown: give f32 or f64", param_hint="--dtype")
    jax.config.update("jax_enable_x64", dtype == "f64")
    if not jax.config.jax_compilation_cache_dir:  # pyright: ignore[reportAttributeAccessIssue]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "carom" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(cache))  # the second run of a scene starts at once
    return dtype


def target(path: Path, suffixes: tuple[str, ...], hint: str = "--out") -> Path:
    """Check a file to write before the work begins, and return it.  hint: the option that names it."""
    from ..formats.atomic import check_writable

    if path.suffix.lower() not in suffixes:
        raise typer.BadParameter(f"{path} must end in {' or '.join(suffixes)}", param_hint=hint)
    if not os.path.isdir(path.parent):
        raise typer.BadParameter(f"there is no folder {path.parent}: make it first", param_hint=hint)
    check_writable(path)
    return path
