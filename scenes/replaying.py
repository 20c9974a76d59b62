"""Replays, which check that a recorded run is reproduced bit by bit."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ..integrators.recording import Events
from .recordings.parts import Part, concatenate_parts
from .recordings.recording import Recording
from .running import DRIVES, Reporter, pieces, report_progress
from .variations import recompile

if TYPE_CHECKING:
    from ..engine.topology import Topology


@dataclass(frozen=True)
class Replay:
    """A replay.  frames, events: number compared, of all lanes.  difference: the first one, in words; "" for none.

    changed: differences between this machine and that of the recording, e.g. "jaxlib is 0.11.0, it was 0.10.2".
    """

    frames: int
    events: int
    difference: str = ""
    changed: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        return not self.difference


def replay(recording: Recording, progress: Reporter | None = None) -> Replay:
    """Compile the scene of a recording again, run it from its first frame on in the same pieces, and compare.

    Raises ValueError if it cannot be run: control or forces that were a function, planar chains, of which only the twin
    is recorded, or double precision without x64.
    """
    from ..integrators.snapshots import model_hash
    from .recordings.provenance import DECISIVE, provenance

    if chain := recording.provenance.get("chain"):
        raise ValueError(f"{recording.title} cannot be replayed: it is of a {chain}; run the chain again, and compare")
    for name in DRIVES:
        if isinstance(given := recording.keywords.get(name), dict):
            raise ValueError(f"{recording.title} cannot be replayed: its {name} was a function, {given['function']}")
    here = provenance(recording.q.dtype)
    changed = tuple(
        f"{name} is {here[name] or 'none'}, it was {recording.provenance.get(name) or 'none'}"
        for name in DECISIVE
        if here[name] != recording.provenance.get(name, "")
    )
    model, state = recompile(recording)
    wide, scenes = (recording.q.shape[-1], recording.v.shape[-1]), (model.topology.nq, model.topology.nv)
    if wide != scenes:
        raise ValueError(
            f"{recording.title} cannot be replayed: its frames have {wide} coordinates and velocities, and its scene "
            f"{scenes}"
        )
    if recording.model_hash and model_hash(model) != recording.model_hash:
        return Replay(0, 0, "the scene compiles to another model here than the one that was run", changed)
    frames, lanes = recording.t.shape[-1], recording.lanes or 1
    size = recording.piece or frames - 1
    results = islice(pieces(model, state, recording.keywords, size), -(-(frames - 1) // size))
    parts, at, difference = list[Part](), 1, ""
    for result in report_progress(results, float(np.nanmax(recording.t)), progress):
        parts.append(Part.after(result))
        difference = _frames_differ(recording, parts[-1], at, model.topology)
        at += parts[-1].t.shape[-1]
        if difference:
            break
    again = concatenate_parts(parts)
    if not difference and at != frames:
        difference = f"it ended with frame {at - 1}, the recording does with frame {frames - 1}"
    difference = difference or _events_differ(recording.events, again.events)
    return Replay(at * lanes, int(np.sum(again.events.count)), difference, changed)


def _frames_differ(recording: Recording, part: Part, at: int, topology: Topology) -> str:
    """The first frame, lane and coordinate whose bits are not the recorded ones.  at: index of the part's first."""
    firsts = []
    for order, (name, axis) in enumerate({"t": -1, "q": -2, "v": -2}.items()):
        lanes = recording.lanes or 1
        new = np.moveaxis(getattr(part, name), axis, 0)
        old = np.moveaxis(getattr(recording, name), axis, 0)[at : at + len(new)]
        old, new = (x.reshape(len(x), lanes, -1) for x in (old, new[: len(old)]))
        if len(where := np.argwhere(_bits(old) != _bits(new))):
            frame, lane, k = map(int, where[0])
            firsts.append((frame, order, name, lane, k, old[frame, lane, k].item(), new[frame, lane, k].item()))
    if not firsts:
        return ""
    frame, _, name, lane, k, was, now = min(firsts)
    starts = {"q": topology.q_start, "v": topology.v_start}.get(name)
    owner = "" if starts is None else f"[{k}] of {topology.names[bisect_right(starts, k) - 1]!r}"
    which = "" if recording.lanes is None else f", lane {lane}"
    t = np.moveaxis(recording.t, -1, 0)[at + frame].reshape(-1)[lane]
    return f"frame {at + frame}{which}, t = {t:.6g} s: {name}{owner} is {now!r}, it was {was!r}"


def _events_differ(old: Events, new: Events) -> str:
    """The first impact that is not the recorded one."""
    counts = [np.atleast_1d(x.count) for x in (old, new)]
    single = np.ndim(old.count) == 0
    for lane, (was, now) in enumerate(zip(*counts, strict=True)):
        which = "" if single else f" in lane {lane}"
        if was != now:
            return f"{now} impacts{which}, there were {was}"
        for name in (f.name for f in fields(Events) if f.name not in ("count", "missed", "law")):
            a, b = (np.asarray(getattr(x, name)) for x in (old, new))
            a, b = (x[:was] if single else x[lane, :was] for x in (a, b))
            if len(rows := np.argwhere(_bits(a) != _bits(b))):
                row = int(rows[0][0])
                return f"impact {row}{which}: {name} is {b[row]!r}, it was {a[row]!r}"
    return ""


def _bits(x: np.ndarray) -> np.ndarray:
    """Bits as whole numbers: NaN equals itself, and the two zeros differ."""
    x = np.ascontiguousarray(x)
    return x.view(f"u{x.itemsize}") if x.dtype.kind == "f" else x
