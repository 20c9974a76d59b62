"""Recording: a run with frames, events, and all that is needed to reproduce it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...engine.display import Row, display_as
from ...engine.shaped import Float, Int
from ...integrators.recording import Events
from ..spec import SceneSpec

if TYPE_CHECKING:
    from ...engine.model import Model
    from ...integrators.rollout import Rollout

NOT_KEPT = ("throw", "devices", "chunk", "options")  # keywords of a rollout that affect neither motion nor events


def _describe(recording: Recording) -> tuple[str, list[Row]]:
    from ...integrators.rollout import described_run

    head, rows = described_run(recording)
    return f"{recording.title}, {head}" + ("" if recording.complete else " (not run to its end)"), rows


@display_as(_describe)
@dataclass(frozen=True)
class Recording:
    """One run, or a batch of runs with one leading axis of lanes; numpy arrays.

    scene: the one that was run.  keywords: those of `carom.rollout`.  title: a name for people.
    t [s].  q, v: the frames, NaN for those that a lane did not reach.
    events: every impact (numpy arrays).  code: of `carom.Code`.  stats: name -> (...), fields of `carom.Stats`.
    varied: model parameters that differ from the scene's, name -> (lanes, ...); empty for a single run.
    model_hash: fingerprint of the model that was run.  provenance: versions, machine, date, command, dtype.
    complete: whether the run reached its end.  piece: intervals between frames that were run at once; 0: all.
    """

    scene: SceneSpec
    title: str
    t: Float[np.ndarray, "*batch frames"]
    q: Float[np.ndarray, "*batch frames nq"]
    v: Float[np.ndarray, "*batch frames nv"]
    events: Events
    code: Int[np.ndarray, "*batch"]
    stats: Mapping[str, np.ndarray]
    keywords: Mapping[str, Any]
    varied: Mapping[str, np.ndarray] = field(default_factory=dict)
    model_hash: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True
    piece: int = 0

    @staticmethod
    def of(
        scene: SceneSpec,
        result: Rollout,
        *,
        title: str,
        keywords: Mapping[str, Any],
        varied: Mapping[str, ArrayLike] | None = None,
        model: Model | None = None,
    ) -> Recording:
        """The recording of a scene's `result = carom.rollout(model, state, **keywords)`.

        model: the one that was run; None: `scene`, compiled.  varied: its parameters that differ from the scene's.
        """
        from ...integrators.snapshots import model_hash
        from ..compile import compile_scene
        from .provenance import provenance

        q, varied = np.asarray(result.q), {name: np.asarray(x) for name, x in (varied or {}).items()}
        if model is None:
            model = compile_scene(scene, q.dtype, overlaps="ignore")[0].replace(**varied)
        return Recording(
            scene, title, np.asarray(result.t), q, np.asarray(result.v), trim_log(result.events),
            np.asarray(result.code), plain_stats(result),
            {name: x for name, x in keywords.items() if name not in NOT_KEPT}, varied, model_hash(model),
            provenance(q.dtype),
        )  # fmt: skip

    def why(self) -> str:
        """The codes in words, as `why()` of a rollout."""
        from ...engine.results import last_well, why

        return why(self.code, last_well(self.t, self.q, self.v))

    @property
    def lanes(self) -> int | None:
        """Number of lanes; None for a single run."""
        return len(self.t) if self.t.ndim == 2 else None

    def lane(self, k: int) -> Recording:
        """One lane of a batch, as a single run. Its frames and events are those of the batch, bit by bit; those of a
        replay may differ, since a program of one lane rounds differently. The fingerprint is left out: this model did
        not run."""
        if self.lanes is None:
            raise ValueError(f"{self.title} is a single run: it has no lanes")
        arrays: dict[str, Any] = {name: getattr(self, name)[k] for name in ("t", "q", "v", "code")}
        events: dict[str, Any] = {name: x if name == "law" else x[k] for name, x in vars(self.events).items()}
        stats, varied = ({name: x[k] for name, x in group.items()} for group in (self.stats, self.varied))
        return replace(self, **arrays, events=Events(**events), stats=stats, varied=varied, model_hash="")


def plain_stats(result: Rollout) -> dict[str, np.ndarray]:
    """Statistics of a rollout, by name."""
    return {f.name: np.asarray(getattr(result.stats, f.name)) for f in fields(result.stats)}


def trim_log(events: Events) -> Events:
    """The event log in numpy, without the rows that no lane has filled."""
    arrays: dict[str, Any] = {f.name: np.asarray(getattr(events, f.name)) for f in fields(events) if f.name != "law"}
    lanes, rows = arrays["count"].ndim, int(arrays["count"].max(initial=0))
    for name, x in arrays.items():
        if name not in ("count", "missed"):
            arrays[name] = x[(slice(None),) * lanes + (slice(rows),)]
    return Events(**arrays, law=events.law)
