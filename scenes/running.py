"""Runs in pieces that are recorded one by one, of a single scene or of lanes with variations.

A run in pieces equals the run in one, bit by bit (docs/snapshots.md), and all pieces share one compiled program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from .chains.spec import ChainSpec
from .formats.atomic import check_writable
from .recordings.file import read_recording
from .recordings.parts import Part, concatenate_parts
from .recordings.recording import Recording
from .recordings.writer import RecordingWriter
from .spec import SceneSpec
from .variations import compile_lanes

if TYPE_CHECKING:
    from ..engine.model import Model
    from ..engine.state import State
    from ..integrators.rollout import Rollout

PIECE = 12  # intervals between frames that are run at once on a CPU: a millisecond more each, and a bar that moves
PIECE_APART = 120  # elsewhere, where lanes wait for each other at the end of a piece
DRIVES = ("control", "forces")  # keywords that may have a row for each interval, or be a function


@dataclass(frozen=True)
class Progress:
    """Progress of a run.  t, duration [s]; events: impacts so far, of all lanes."""

    t: float
    duration: float
    events: int


Reporter = Callable[[Progress], None]


def record(
    scene: SceneSpec | ChainSpec,
    path: str | PathLike[str] | None = None,
    *,
    title: str = "scene",
    lanes: int | None = None,
    variations: Mapping[str, Sequence[Any]] | None = None,
    dtype: DTypeLike | None = None,
    piece: int | None = None,
    progress: Reporter | None = None,
    **keywords: Any,
) -> Recording:
    """Run a scene and record it.  keywords: of `carom.rollout`; duration is required.

    path: that of the recording's file, which grows while the run goes on; None: it is in memory only.
    lanes: number of runs side by side.  variations: their differences, path -> a value for each lane, paths as in
    `apply_setting`: {"body.ball.friction": [0.1, 0.5]}; without `lanes` there are as many lanes as values. There are a
    million lanes at most.
    piece: intervals between frames that are run at once; None: a few, by the device.  progress: called after each.
    A lane that fails is NaN from then on, and its code says why; the run ends when none is left. An interrupted run
    (Ctrl-C) leaves a file of the pieces so far. A path that cannot be written, and frames that exceed this machine's
    memory, are refused before it begins.
    A planar chain is run alone and at once, with the keywords of `carom.chain_rollout`; the recording is its twin's.
    """
    from ..integrators.options import spread

    keywords = spread(keywords)
    if keywords.get("report"):
        raise ValueError("record: a recording holds no reports: carom.rollout(..., report=...) gives them")
    if path is not None:
        check_writable(path)
    if isinstance(scene, ChainSpec):
        return _record_chain(scene, path, lanes, variations, {"title": title, "dtype": dtype, **keywords}, progress)
    times = _times(keywords)
    model, state, varied = compile_lanes(scene, lanes, variations or {}, dtype)
    _check_memory(len(times), state)
    size = _piece_size(len(times) - 1, piece or _default_piece())
    results = report_progress(pieces(model, state, keywords, size), float(times[-1]), progress)
    first = Recording.of(scene, next(results), title=title, keywords=keywords, varied=varied, model=model)
    first = replace(first, piece=size, complete=False)
    if path is None:
        parts = [Part.first(first), *map(Part.after, results)]
        return replace(first, **vars(concatenate_parts(parts)), complete=True)
    with RecordingWriter(path, first) as writer:
        for result in results:
            writer.append(result)
    return read_recording(path)


def _record_chain(
    spec: ChainSpec,
    path: str | PathLike[str] | None,
    lanes: int | None,
    variations: Mapping[str, Sequence[Any]] | None,
    keywords: dict[str, Any],
    progress: Reporter | None,
) -> Recording:
    from .running_chains import record_chain

    if lanes is not None or variations:
        raise ValueError(
            "record: a planar chain is run alone; of batches see carom.stack_chains and carom.chain_rollout"
        )
    recording = record_chain(spec, path, **keywords)
    if progress is not None:
        progress(Progress(float(np.nanmax(recording.t)), float(keywords["duration"]), int(recording.events.count)))
    return recording


def pieces(model: Model, state: State, keywords: Mapping[str, Any], size: int) -> Iterator[Rollout]:
    """The rollout of these keywords, `size` intervals between frames at a time; each begins with the last frame of
    the one before."""
    from ..integrators.rollout import rollout

    times, frame_dt = _times(keywords), keywords.get("frame_dt", 1 / 60)
    intervals = len(times) - 1
    drives: dict[str, Any] = {name: keywords.get(name) for name in DRIVES}
    rows = {name: np.asarray(x) for name, x in drives.items() if not callable(x) and np.ndim(x) >= 2}
    rows = {name: _every_frame(name, x, intervals, state) for name, x in rows.items()}
    for begin in range(0, intervals, size):
        end = min(begin + size, intervals)
        odd = end == intervals and abs(times[end] - intervals * frame_dt) > 1e-9 * frame_dt
        duration = times[end] - times[begin] if odd else (end - begin) * frame_dt
        mine = {**keywords, "duration": float(duration), "throw": False}
        mine |= {name: x[..., begin:end, :] for name, x in rows.items()}
        result = rollout(model, state, **mine)
        yield result
        failed = _has_failed(np.asarray(result.code))
        if failed.all():
            return
        state = _mask_failed(failed, result.state)


def _every_frame(name: str, rows: np.ndarray, intervals: int, state: State) -> np.ndarray:
    """Numbers for motors or forces as (intervals, nv), or of a batch as (lanes, intervals, nv)."""
    from ..integrators.control import order_of

    lanes, nv = state.t.shape, rows.shape[-1]
    axes = order_of(name, rows.shape, intervals, nv, lanes)
    if axes == "frames, lanes":
        return np.moveaxis(rows, 0, 1)
    rows = rows[:, None] if axes == "lanes" else rows
    return np.broadcast_to(rows, (*lanes, intervals, nv))


def report_progress(results: Iterator[Rollout], duration: float, report: Reporter | None) -> Iterator[Rollout]:
    """The pieces of a run, with a report of progress after each."""
    events, t = 0, 0.0
    for result in results:
        yield result
        if report is not None:
            events += int(np.sum(result.stats.impacts))
            t = float(np.nanmax(np.asarray(result.t), initial=t))
            report(Progress(t, duration, events))


def _times(keywords: Mapping[str, Any]) -> np.ndarray:
    from ..integrators.rollout import frame_times

    if "duration" not in keywords:
        raise ValueError("duration is missing: say how long to run, in seconds")
    return frame_times(keywords["duration"], keywords.get("frame_dt", 1 / 60), keywords.get("max_dt", 1 / 240))


def _check_memory(frames: int, state: State) -> None:
    """Check that the frames of all lanes fit in this machine's memory, if its size is known."""
    needed = frames * sum(x.nbytes for x in (state.t, state.q, state.v))
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if needed > memory:
        raise ValueError(
            f"record: {frames} frames take {needed / 1e9:.3g} GB, and this machine has {memory / 1e9:.3g} GB: give a "
            "shorter duration, a longer frame_dt, or fewer lanes"
        )


def _default_piece() -> int:
    import jax

    return PIECE if jax.default_backend() == "cpu" else PIECE_APART


def _piece_size(intervals: int, wanted: int) -> int:
    """Number of intervals of a piece: about `wanted`, and equal in all pieces if the number of intervals allows it,
    since another length is another program to compile."""
    if intervals <= wanted:
        return intervals
    alike = [n for n in range(-(-wanted // 2), 2 * wanted + 1) if intervals % n == 0]
    return min(alike, key=lambda n: abs(n - wanted), default=wanted)


def _has_failed(code: np.ndarray) -> np.ndarray:
    """Return whether lanes have failed."""
    from ..engine.results import LEAST_GRAVE

    return code >= LEAST_GRAVE


def _mask_failed(failed: np.ndarray, state: State) -> State:
    """The state with NaN in failed lanes, whose next piece would not begin at their last frame."""
    if not failed.any():
        return state
    import jax.numpy as jnp

    wide = failed[:, None]
    return replace(state, q=jnp.where(wide, jnp.nan, state.q), v=jnp.where(wide, jnp.nan, state.v))
