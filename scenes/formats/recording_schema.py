"""What stands in a recording's file: its arrays by name. `docs/recordings.md` tells users."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from typing import Any

import numpy as np

from ...engine.results import renumbered
from ...integrators.recording import Events
from .errors import FileError
from .recording import Recording
from .recording_parts import Part

SCHEMA = 2  # 1: codes may have their former numbers
Arrays = dict[str, np.ndarray]
EVENT_COLUMNS = tuple(f.name for f in fields(Events) if f.name != "law")


def head_arrays(recording: Recording) -> Arrays:
    """All but frames, events and what became of the run."""
    from .toml_writing import to_toml

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
    """Frames, events, and what became of the run so far."""
    arrays = {"t": part.t, "q": part.q, "v": part.v, "code": part.code}
    arrays |= {f"events_{name}": np.asarray(getattr(part.events, name)) for name in EVENT_COLUMNS}
    return arrays | {f"stats_{name}": np.asarray(x) for name, x in part.stats.items()}


def part_of(arrays: Mapping[str, np.ndarray], head: Mapping[str, np.ndarray]) -> Part:
    """head: arrays of the recording's first link, or of all of it."""
    columns, code = {name: arrays[f"events_{name}"] for name in EVENT_COLUMNS}, arrays["code"]
    if int(head["schema"]) < 2:
        columns["code"], code = renumbered(columns["code"]), renumbered(code)
    events, stats = Events(**columns, law=str(head["law"])), _named(arrays, "stats_")  # type: ignore[arg-type]
    return Part(arrays["t"], arrays["q"], arrays["v"], events, code, stats)


def recording_of(path: str | PathLike[str], head: Mapping[str, np.ndarray], part: Part, complete: bool) -> Recording:
    """From a file's arrays. Raises FileError where its scene is not one; KeyError, ValueError: the file is damaged."""
    from .toml import parse_toml

    texts = {name: str(head[name]) for name in ("scene", "title", "keywords", "provenance", "model_hash")}
    if not part.t.shape == part.q.shape[:-1] == part.v.shape[:-1]:
        raise ValueError(f"shapes of t, q and v are {part.t.shape}, {part.q.shape}, {part.v.shape}")
    return Recording(
        parse_toml(texts["scene"], path), texts["title"], part.t, part.q, part.v, part.events, part.code, part.stats,
        json.loads(texts["keywords"]), _named(head, "varied_"), texts["model_hash"], json.loads(texts["provenance"]),
        complete, int(head["piece"]),
    )  # fmt: skip


def check_schema(path: str | PathLike[str], head: Mapping[str, np.ndarray]) -> None:
    """That the file is a recording, and one that this version reads."""
    if "schema" not in head:
        has = ", ".join(sorted(head)[:8]) or "nothing"
        raise FileError(path, f"this is no recording of Carom, it holds {has}: give a file that `carom run` wrote")
    schema = int(head["schema"])
    if schema > SCHEMA:
        raise FileError(
            path, f"its schema is {schema}, this version of Carom reads up to {SCHEMA}: install a newer Carom"
        )


def _named(arrays: Mapping[str, np.ndarray], prefix: str) -> Arrays:
    return {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}


def _plain(value: Any) -> Any:
    """What JSON has no word for: arrays as lists; of a function its name, for it cannot be kept."""
    if callable(value):
        return {"function": getattr(value, "__qualname__", repr(value))}
    return np.asarray(value).tolist()
