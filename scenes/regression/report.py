"""A page of the changes between two versions: two folders of event logs or recordings, scene by scene."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path

from ..formats.atomic import replacing
from ..formats.errors import FileError
from ..recordings.events import EventLog, event_log, read_log
from .difference import Difference, Tolerances
from .golden import changes

SHOWN = 20  # differences of a scene on the page; the others are counted


@dataclass(frozen=True)
class Change:
    """The change of a scene; old or new: None if that version has none of this name."""

    name: str
    old: EventLog | None
    new: EventLog | None
    differences: tuple[Difference, ...] = ()

    @property
    def worst(self) -> float:
        """The largest difference, in tolerances."""
        return max((d.off for d in self.differences), default=0.0)

    @property
    def verdict(self) -> str:
        if self.old is None or self.new is None:
            return "new" if self.old is None else "missing"
        return "changed" if self.differences else "same"


def report(
    old: str | PathLike[str], new: str | PathLike[str], path: str | PathLike[str], tolerances: Tolerances | None = None
) -> list[Change]:
    """Write one HTML page, which needs no network, of the changes between two versions; the largest first.

    old, new: folders of golden logs (.jsonl) or recordings (.npz), of the same names.  Returns the changes.
    Needs matplotlib.
    """
    ours, theirs = _logs(Path(old)), _logs(Path(new))
    all_changes: list[Change] = []
    for name in sorted({*ours, *theirs}):
        a, b = ours.get(name), theirs.get(name)
        differ = changes(a, b, tolerances) if a is not None and b is not None else ()
        all_changes.append(Change(name, a, b, tuple(differ)))
    all_changes.sort(
        key=lambda change: (change.verdict == "same", -change.worst, -len(change.differences), change.name)
    )
    page = _page(all_changes, str(old), str(new))
    with replacing(path) as file:
        file.write(page.encode())
    return all_changes


def _logs(folder: Path) -> dict[str, EventLog]:
    """Name -> log, of every file in a folder and its folders."""
    if not folder.is_dir():
        raise FileError(folder, "this is no folder: give one with event logs (.jsonl) or recordings (.npz)")
    logs: dict[str, EventLog] = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).with_suffix("").as_posix()
        if file.suffix == ".jsonl":
            logs[name] = read_log(file)
        elif file.suffix == ".npz":
            from ..recordings.file import read_recording

            logs[name] = event_log(read_recording(file))
    if not logs:
        raise FileError(folder, "there is no event log (.jsonl) and no recording (.npz) in it")
    return logs


_STYLE = """
:root { color-scheme: light; font: 15px/1.5 system-ui, sans-serif; color: #333 }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .3rem .8rem .3rem 0 }
th { border-bottom: 2px solid #ccc } td { border-bottom: 1px solid #eee; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
.same { color: #009E73 } .changed { color: #D55E00 } .new, .missing { color: #0072B2 }
section { margin-top: 2.5rem } img { width: 100% } code { font-size: 13px } li { margin: .2rem 0 }
"""


def _page(all_changes: list[Change], old: str, new: str) -> str:
    said = f"{sum(change.verdict != 'same' for change in all_changes)} of {len(all_changes)} scenes changed"
    rows = "".join(_row(change) for change in all_changes)
    parts = "".join(_section(change) for change in all_changes if change.verdict == "changed")
    return (
        '<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{said}</title><style>{_STYLE}</style>"
        f"<body><h1>{said}</h1>"
        f"<p>From <code>{escape(old)}</code> to <code>{escape(new)}</code>.</p>"
        "<table><tr><th>scene<th><th>off, in tolerances<th>impacts<th>first difference"
        f"{rows}</table>{parts}</body></html>\n"
    )


def _row(change: Change) -> str:
    counts = " to ".join(dict.fromkeys(str(len(log.impacts)) for log in (change.old, change.new) if log is not None))
    first = escape(change.differences[0].what.split(";")[0]) if change.differences else ""
    linked = f'<a href="#{escape(change.name)}">{escape(change.name)}</a>' if first else escape(change.name)
    worst = ("&infin;" if math.isinf(change.worst) else f"{change.worst:.3g}") if first else ""
    return (
        f'<tr><td>{linked}<td class="{change.verdict}">{change.verdict}<td class="number">{worst}'
        f"<td>{counts}<td>{first}"
    )


def _section(change: Change) -> str:
    """Section of a scene that both versions have, and that changed."""
    from ..show.plots import change_svg

    assert change.old is not None
    assert change.new is not None
    svg = base64.b64encode(change_svg(change.old, change.new).encode()).decode()
    items = "".join(f"<li>{escape(d.what)}" for d in change.differences[:SHOWN])
    more = len(change.differences) - SHOWN
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    name = escape(change.name)
    return (
        f'<section id="{name}"><h2>{name}</h2><img alt="impulses and energies of {name}, old and new" '
        f'src="data:image/svg+xml;base64,{svg}"><ol>{items}</ol>{rest}</section>'
    )
