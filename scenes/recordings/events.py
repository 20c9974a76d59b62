"""Event logs as text: a run's impacts, in numbers that people read and version control compares.

One line of JSON each: first a head, then every impact in order, then the end of each link. Numbers are written so that
they read back to the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..formats.errors import FileError
from .reading import Reading
from .recording import Recording

SCHEMA = 1
# settings on which impacts depend; they do not depend on steps and frames
OPTIONS = ("duration", "scheme", "time_control", "impacts", "resting")


@dataclass(frozen=True)
class LoggedImpact:
    """An impact.  t [s].  bodies: names, see `reading.ImpactTable`.  p_n, p_t: normal and tangential impulse [N s].

    u_n, u_t: normal velocity and slip speed, before and after [m/s].  kinetic: of the scene, before and after [J].
    """

    t: float
    bodies: tuple[str, str]
    p_n: float
    p_t: float
    u_n: tuple[float, float]
    u_t: tuple[float, float]
    kinetic: tuple[float, float]
    lane: int = 0


@dataclass(frozen=True)
class End:
    """The coordinates and velocities of a link in the last frame, as in q and v."""

    link: str
    q: tuple[float, ...]
    v: tuple[float, ...]
    lane: int = 0


@dataclass(frozen=True)
class EventLog:
    """An event log.  head: title, law, precision, keywords.  impacts: by lane and time.  ends: by lane and link."""

    head: Mapping[str, Any] = field(default_factory=dict)
    impacts: tuple[LoggedImpact, ...] = ()
    ends: tuple[End, ...] = ()


def event_log(recording: Recording) -> EventLog:
    """The event log of a recording."""
    reading, impacts = Reading(recording), []
    rows = reading.impacts
    for k in range(len(rows.t)):
        impacts.append(LoggedImpact(
            float(rows.t[k]), (str(rows.a[k]), str(rows.b[k])), float(rows.p_n[k]), float(rows.p_t[k]),
            _pair(rows.u_n[k]), _pair(rows.u_t[k]), _pair(rows.kinetic[k]), int(rows.lane[k]),
        ))  # fmt: skip
    topology, ends = reading.model.topology, []
    for lane in range(reading.lanes):
        for k, name in enumerate(topology.names):
            q = reading.q[lane, -1, topology.q_start[k] : topology.q_start[k + 1]]
            v = reading.v[lane, -1, topology.v_start[k] : topology.v_start[k + 1]]
            ends.append(End(name, tuple(q.tolist()), tuple(v.tolist()), lane))
    head: dict[str, Any] = {"title": recording.title, "law": recording.events.law, "dtype": recording.q.dtype.name}
    head |= {name: recording.keywords[name] for name in OPTIONS if name in recording.keywords}
    return EventLog(head, tuple(impacts), tuple(ends))


def log_text(log: EventLog) -> str:
    """The text of a log."""
    lines: list[dict[str, Any]] = [{"carom event log": SCHEMA, **log.head}]
    for row in (*log.impacts, *log.ends):
        values = {name: value for name, value in vars(row).items() if name != "lane" or value}
        lines.append(values)
    return "".join(json.dumps(line) + "\n" for line in lines)


def read_log(path: str | PathLike[str]) -> EventLog:
    """Read a log from its file; raises FileError."""
    text, rows = Path(path).read_text("utf-8"), []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            raise FileError(path, f"{line[:40]!r} is no line of JSON: make the log again", number) from None
    if not rows or not isinstance(rows[0], dict) or "carom event log" not in rows[0]:
        raise FileError(path, 'this is no event log: the first line must hold "carom event log"', 1)
    head = dict(rows[0])
    schema = head.pop("carom event log")
    if schema != SCHEMA:
        raise FileError(
            path, f"schema {schema!r} is not {SCHEMA}, the one this version of Carom reads: make it again", 1
        )
    impacts, ends = [], []
    for number, row in enumerate(rows[1:], 2):
        try:
            values: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in row.items()}
            entry = LoggedImpact(**values) if "bodies" in values else End(**values)
            if not _is_sound(entry):
                raise TypeError
            impacts.append(entry) if isinstance(entry, LoggedImpact) else ends.append(entry)
        except (TypeError, AttributeError):
            raise FileError(path, "neither an impact nor the end of a link: make the log again", number) from None
    return EventLog(head, tuple(impacts), tuple(ends))


def _is_sound(entry: LoggedImpact | End) -> bool:
    """Return whether the fields of an entry that was read are of their types."""

    def are(kind: type | tuple[type, ...], values: Any, count: int | None = None) -> bool:
        listed = isinstance(values, tuple) and (count is None or len(values) == count)
        return listed and all(isinstance(x, kind) and not isinstance(x, bool) for x in values)

    numbers = int, float
    if not are(int, (entry.lane,)):
        return False
    if isinstance(entry, End):
        return are(str, (entry.link,)) and are(numbers, entry.q) and are(numbers, entry.v)
    pairs = entry.u_n, entry.u_t, entry.kinetic
    own = entry.t, entry.p_n, entry.p_t
    return are(str, entry.bodies, 2) and are(numbers, own) and all(are(numbers, x, 2) for x in pairs)


def _pair(x: np.ndarray) -> tuple[float, float]:
    return float(x[0]), float(x[1])
