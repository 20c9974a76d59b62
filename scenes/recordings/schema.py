"""The schema of a recording's file: its arrays by name. `docs/recordings.md` describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from typing import Any

import numpy as np

from ...engine.results import renumber
from ...integrators.recording import Events
from ..formats.errors import FileError
from .keywords import check_keywords
from .parts import Part
from .recording import Recording

SCHEMA = 2  # 1: codes may have their former numbers
Arrays = dict[str, np.ndarray]
EVENT_COLUMNS = tuple(f.name for f in fields(Events) if f.name != "law")


def head_arrays(recording: Recording) -> Arrays:
    """All arrays except frames, events and the outcome of the run."""
    from ..formats.toml_writing import to_toml

    texts = {
        "scene": to_toml(recording.scene),
        "title": recording.title,
        "keywords": json.dumps(dict(recording.keywords), default=_plain),
        "provenance": json.dumps(dict(recording.provenance)),
        "model_hash": recording.model_hash,
        "law": recording.events.law,
    }
    arrays = {"schema": np.array(SCHEMA), **{name: np.array(text) for name, text in texts.items()}}
    arrays["piece"] = np.array(recording.piece)
    return arrays | {f"varied_{name}": np.asarray(x) for name, x in recording.varied.items()}


def part_arrays(part: Part) -> Arrays:
    """Frames, events, and the outcome of the run so far."""
    arrays = {"t": part.t, "q": part.q, "v": part.v, "code": part.code}
    arrays |= {f"events_{name}": np.asarray(getattr(part.events, name)) for name in EVENT_COLUMNS}
    return arrays | {f"stats_{name}": np.asarray(x) for name, x in part.stats.items()}


def part_of(arrays: Mapping[str, np.ndarray], head: Mapping[str, np.ndarray]) -> Part:
    """The part of a file's arrays.  head: arrays of the recording's first link, or of all of it."""
    columns, code = {name: arrays[f"events_{name}"] for name in EVENT_COLUMNS}, arrays["code"]
    if int(head["schema"]) < 2:
        columns["code"], code = renumber(columns["code"]), renumber(code)
    events, stats = Events(**columns, law=str(head["law"])), _arrays_under(arrays, "stats_")  # type: ignore[arg-type]
    return Part(arrays["t"], arrays["q"], arrays["v"], events, code, stats)


def recording_of(path: str | PathLike[str], head: Mapping[str, np.ndarray], part: Part, complete: bool) -> Recording:
    """The recording of a file's arrays. FileError: the scene is invalid; KeyError, ValueError: the file is damaged."""
    from ..formats.toml import parse_toml

    keywords, provenance = check_arrays(head, part)
    texts = {name: str(head[name]) for name in ("scene", "title", "model_hash")}
    return Recording(
        parse_toml(texts["scene"], path), texts["title"], part.t, part.q, part.v, part.events, part.code, part.stats,
        keywords, _arrays_under(head, "varied_"), texts["model_hash"], provenance, complete, int(head["piece"]),
    )  # fmt: skip


def check_arrays(head: Mapping[str, np.ndarray], part: Part) -> tuple[dict[str, Any], dict[str, str]]:
    """Check that a file's arrays fit together, and return its keywords and provenance; raises ValueError."""
    t, q, v, code = part.t, part.q, part.v, part.code
    lanes, columns = t.shape[:-1], {name: np.asarray(getattr(part.events, name)) for name in EVENT_COLUMNS}
    count, rows = columns["count"], columns["t"].shape[-1:]
    own = {"count": (), "missed": (), "bodies": (*rows, 2)}
    own |= {name: (*rows, 3) for name in ("point", "normal", "u_before", "u_after", "impulse")}
    shapes = {
        "t": (t, t.shape[-1:]),
        "q": (q, (*t.shape[-1:], *q.shape[-1:])),
        "v": (v, (*t.shape[-1:], *v.shape[-1:])),
    }
    shapes |= {"code": (code, ())} | {f"events_{name}": (x, own.get(name, rows)) for name, x in columns.items()}
    for name, (x, shape) in shapes.items():
        if x.shape != (*lanes, *shape) or x.dtype.kind not in "iuf":
            raise ValueError(f"{name} has the shape {x.shape} and the type {x.dtype}, t the shape {t.shape}")
    if not 1 <= t.ndim <= 2 or not t.size or not rows:
        raise ValueError(f"t has the shape {t.shape}, events_t {columns['t'].shape}")
    if count.min(initial=0) < 0 or count.max(initial=0) > rows[0]:
        raise ValueError(f"it counts {count.max()} impacts, and has room for {rows[0]}")
    keywords, provenance = (json.loads(str(head[name])) for name in ("keywords", "provenance"))
    if not isinstance(keywords, dict) or not isinstance(provenance, dict):
        raise ValueError("its keywords and provenance must be tables")
    if not all(isinstance(text, str) for text in provenance.values()):
        raise ValueError("its provenance must be texts")
    check_keywords(keywords, chain="chain" in provenance)
    piece, varied = head["piece"], _arrays_under(head, "varied_")
    if piece.shape or piece.dtype.kind not in "iu" or not 0 <= piece < 2**31:
        raise ValueError("its piece is no whole number of frames")
    for name, x in varied.items():
        if x.shape[:1] != lanes or x.dtype.kind not in "biuf":
            raise ValueError(f"its {name} has the shape {x.shape} and the type {x.dtype}, the lanes the shape {lanes}")
    return keywords, provenance


def check_schema(path: str | PathLike[str], head: Mapping[str, np.ndarray]) -> None:
    """Check that the file is a recording that this version reads."""
    if "schema" not in head:
        has = ", ".join(sorted(head)[:8]) or "nothing"
        raise FileError(path, f"this is no recording of Carom, it holds {has}: give a file that `carom run` wrote")
    if head["schema"].shape or head["schema"].dtype.kind not in "iu":
        raise FileError(path, "it is damaged (its schema is no whole number): copy it again, or run the scene again")
    schema = int(head["schema"])
    if schema > SCHEMA:
        raise FileError(
            path, f"its schema is {schema}, this version of Carom reads up to {SCHEMA}: install a newer Carom"
        )


def _arrays_under(arrays: Mapping[str, np.ndarray], prefix: str) -> Arrays:
    return {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}


def _plain(value: object) -> object:
    """Values that JSON does not have: arrays become lists, functions their names, since they cannot be saved."""
    if callable(value):
        return {"function": getattr(value, "__qualname__", repr(value))}
    return np.asarray(value).tolist()
