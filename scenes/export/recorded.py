"""The world of a recorded run, which goes on from any of its frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...collision.poses import Array
from ...integrators.options import OptionKeywords, Options
from ..live.world import Live
from ..recordings.recording import Recording
from ..running import DRIVES

OF_RUNS = ("max_ticks", "max_events")  # options of a whole run, not of one of its frames
FRAME = 1 / 60  # [s] between frames of a run, if it does not say


def live_of_run(recording: Recording, keywords: dict[str, Any]) -> Live:
    """A world of the scene of a single run, in its precision, and with its options: the law, the longest step.
    keywords: of `Live`; they override these."""
    if recording.lanes is not None or recording.varied:
        raise ValueError(
            f"{recording.title} is of many lanes, or a lane of them, whose numbers are not the scene's: a page in "
            "which the viewer takes over is of a single run"
        )
    if chain := recording.provenance.get("chain"):
        raise ValueError(
            f"{recording.title} is of a {chain}, and what is recorded is its twin: no world goes on as it went"
        )
    given = {name: x for name, x in recording.keywords.items() if name in OptionKeywords.__annotations__}
    own = {"dt": recording.keywords.get("frame_dt", FRAME), "max_dt": Options().max_dt, **given}
    own = {name: x for name, x in own.items() if name not in OF_RUNS and x is not None}
    return Live(recording.scene, dtype=recording.q.dtype, warm=False, **(own | keywords))


def notes(recording: Recording) -> list[str]:
    """Notes on the parts of a run that do not go on."""
    driven = any(recording.keywords.get(name) is not None for name in DRIVES)
    return ["the run's control ends where the viewer takes over"] * driven


def states(recording: Recording) -> Array:
    """State q, v and t of each frame (F, bytes), as a save has them after its header, see `scenes/live/saves.py`;
    after the last frame that a run reached, that one again."""
    q, v, t = recording.q, recording.v, recording.t
    last = np.minimum(np.arange(len(q)), max(int(np.isfinite(q).all(-1).sum()) - 1, 0))
    rows = np.concatenate([q, v, t[:, None]], 1)[last]
    return rows.astype(q.dtype.newbyteorder("<")).view(np.uint8)
