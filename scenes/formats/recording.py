"""A run as people keep it: frames, events, and all that is needed to make it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...integrators.recording import Events
from ..spec import SceneSpec


@dataclass(frozen=True)
class Recording:
    """One run, or a batch of runs with one leading axis of lanes; numpy arrays.

    scene: what was run.  keywords: of `carom.rollout`.  title: what people call it.
    t: (..., F) [s].  q: (..., F, nq).  v: (..., F, nv): the frames, NaN where a lane did not get.
    events: every impact (numpy arrays).  code: (...) result codes.  stats: name -> (...), fields of `carom.Stats`.
    varied: model parameters that differ from the scene's, name -> (lanes, ...); empty for a single run.
    model_hash: fingerprint of the scene's model.  provenance: versions, machine, date, command, dtype.
    complete: whether the run came to its end.
    """

    scene: SceneSpec
    title: str
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    events: Events
    code: np.ndarray
    stats: Mapping[str, np.ndarray]
    keywords: Mapping[str, Any]
    varied: Mapping[str, np.ndarray] = field(default_factory=dict)
    model_hash: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True

    @property
    def lanes(self) -> int | None:
        """How many lanes; None for a single run."""
        return len(self.t) if self.t.ndim == 2 else None
