"""Parts of a run, one after another, and their concatenation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ...integrators.recording import Events
from .recording import Recording, plain_stats, trim_log

if TYPE_CHECKING:
    from ...integrators.rollout import Rollout

TOTALS = ("ticks", "rollbacks", "impacts", "resting", "windows")
MOST = ("max_penetration", "contacts", "pairs")


@dataclass(frozen=True)
class Part:
    """Some frames and the events before each of them, fields as in `Recording`; code and stats are this part's."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    events: Events
    code: np.ndarray
    stats: Mapping[str, np.ndarray]

    @staticmethod
    def first(recording: Recording) -> Part:
        return Part(*(getattr(recording, f.name) for f in fields(Part)))

    @staticmethod
    def after(result: Rollout) -> Part:
        """The part of a rollout that continues the part before: its first frame is known already."""
        t, q, v = (np.asarray(x) for x in (result.t, result.q, result.v))
        events, code = trim_log(result.events), np.asarray(result.code)
        return Part(t[..., 1:], q[..., 1:, :], v[..., 1:, :], events, code, plain_stats(result))

    @property
    def nbytes(self) -> int:
        return self.q.nbytes + self.v.nbytes + self.events.t.nbytes * 20


def concatenate_parts(parts: Sequence[Part]) -> Part:
    """Concatenate parts that follow each other."""
    if len(parts) == 1:
        return parts[0]
    frames = {"t": -1, "q": -2, "v": -2}
    arrays = {name: np.concatenate([getattr(part, name) for part in parts], axis) for name, axis in frames.items()}
    code = np.max([part.code for part in parts], 0)  # the gravest, see `engine.results.Code`
    stats = _stats([part.stats for part in parts])
    return Part(**arrays, events=_events([part.events for part in parts]), code=code, stats=stats)


def _stats(stats: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    columns = {name: np.stack([each[name] for each in stats]) for name in stats[0]}  # older files have fewer
    whole = {name: columns[name].sum(0, dtype=np.int64) for name in TOTALS if name in columns}
    useful = np.maximum(columns["useful"], np.finfo(np.float32).tiny)
    made = (columns["ticks"] / useful).sum(0)  # ticks that the program made, in this lane or others
    share = np.where(made > 0, whole["ticks"] / np.maximum(made, 1), 1).astype(columns["useful"].dtype)
    most = {name: columns[name].max(0) for name in MOST if name in columns}
    return whole | most | {"useful": share}


def _events(parts: Sequence[Events]) -> Events:
    """Each lane's rows one after another."""
    counts = np.stack([np.atleast_1d(part.count) for part in parts])
    starts, total = np.cumsum(counts, 0) - counts, counts.sum(0)
    single, rows = np.ndim(parts[0].count) == 0, int(total.max(initial=0))
    out: dict[str, Any] = {}
    for f in fields(Events):
        if f.name in ("count", "missed", "law"):
            continue
        columns = [np.asarray(getattr(part, f.name)) for part in parts]
        columns = [column[None] if single else column for column in columns]
        whole = np.full((len(total), rows, *columns[0].shape[2:]), _blank(columns[0]), columns[0].dtype)
        for column, start, count in zip(columns, starts, counts, strict=True):
            lane, row = np.nonzero(np.arange(column.shape[1]) < count[:, None])
            whole[lane, start[lane] + row] = column[lane, row]
        out[f.name] = whole[0] if single else whole
    count = (total[0] if single else total).astype(np.int32)
    return Events(**out, count=count, missed=np.sum([part.missed for part in parts], 0), law=parts[0].law)  # type: ignore[arg-type]


def _blank(column: np.ndarray) -> int:
    """The filling of rows that are not real."""
    return -1 if np.issubdtype(column.dtype, np.integer) else 0
