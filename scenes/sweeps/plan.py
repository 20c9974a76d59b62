"""A sweep as a plan that any process can carry out: its shards are tasks that depend on nothing else.

The lanes of a shard have the same bits in any process, and in a shard of any size (docs/batches.md).
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ...integrators.clock_assignment import MANY
from ...integrators.rollout import frame_times, rollout
from ...integrators.snapshots import model_hash, state_hash
from ..compile import compile_scene
from ..recordings.provenance import DECISIVE, provenance
from ..spec import SceneSpec
from .draws import lane_values
from .lane_models import LaneModels
from .measures import Function, ShardLanes, measure_lanes

SHARD_BYTES = 64e6  # bytes of the frames and the logs that a shard holds while it runs
EVENT_BYTES = 164  # bytes of a row of a log, in double precision
MOST_IN_SHARD = 2000  # lanes by default: some seconds of work, which a kill costs at most
LOGGED_APART = 1024  # impacts of a lane that are logged where islands have clocks of their own, and log out of order


@dataclass(frozen=True)
class SweepPlan:
    """A plan.  vary, design, seed: see `lane_values`; values are computed from them where they are needed.
    most: number of lanes, None: that of the grid or the design.
    size: lanes of each shard, the last one has fewer; None: as many as need little memory.
    keywords: of `carom.rollout`.  measures: see `select_measures`.  double: whether in double precision.
    """

    scene: SceneSpec
    vary: Mapping[str, object]
    design: Mapping[str, Sequence[Any]]
    seed: int
    most: int | None
    size: int | None
    keywords: Mapping[str, Any]
    measures: Mapping[str, Function | None]
    double: bool

    @cached_property
    def values(self) -> dict[str, list[Any]]:
        return lane_values(self.vary, self.design, self.most, self.seed)

    @cached_property
    def lanes(self) -> int:
        return len(next(iter(self.values.values()))) if self.values else self.most or 1

    @cached_property
    def shard(self) -> int:
        return min(self.lanes, self.size or self._usual_shard())

    @property
    def shards(self) -> int:
        return -(-self.lanes // self.shard)

    def lanes_of(self, number: int) -> range:
        return range(number * self.shard, min((number + 1) * self.shard, self.lanes))

    @cached_property
    def models(self) -> LaneModels:
        return LaneModels(self.scene, self.values)

    def _usual_shard(self) -> int:
        """Lanes whose frames take little memory."""
        given = self.keywords
        frames = len(frame_times(given["duration"], given.get("frame_dt", 1 / 60), given.get("max_dt", 1 / 240)))
        state = self.models.state
        each = frames * sum(x.nbytes for x in (state.t, state.q, state.v)) + self._logged * EVENT_BYTES
        return max(1, min(MOST_IN_SHARD, int(SHARD_BYTES / each)))

    def run(self, number: int) -> dict[str, np.ndarray]:
        """Measures of each lane of a shard. All shards run the same number of lanes, and share one program: the last
        lane of the last one is repeated."""
        with jax.enable_x64(self.double):
            lanes = self.lanes_of(number)
            repeated = np.minimum(np.arange(lanes.start, lanes.start + self.shard), self.lanes - 1).tolist()
            model, start = self.models.of(repeated)
            given = {**self.keywords, "throw": False}
            if given.get("max_events") is None:
                given["max_events"] = self._logged
            ran = rollout(model, start, **given)
            return measure_lanes(ShardLanes(model, start, ran), self.measures, len(lanes))

    @property
    def _logged(self) -> int:
        """Number of logged impacts of a lane, for the measures."""
        if "first_impact" not in self.measures and not any(self.measures.values()):
            return 0
        clocks = self.keywords.get("clocks", "auto")
        apart = clocks == "islands" or (clocks == "auto" and len(self.models.model.topology.names) >= MANY)
        return LOGGED_APART if apart else 1

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest, which distinguishes this sweep, and its bits, from those of other versions and machines."""
        with jax.enable_x64(self.double):
            model, state = compile_scene(self.scene, overlaps="ignore")
            made = provenance(model.gravity.dtype)
            scene = {"model": model_hash(model), "state": state_hash(state)}
            shard = self.shard
        options = {name: _fingerprint(x) for name, x in self.keywords.items()}
        return {
            "scene": scene, "options": options, "paths": list(self.values),
            "values": {path: self._values_of(path) for path in self.values},
            "seed": self.seed, "lanes": self.lanes, "shard": shard,
            "measures": {name: _fingerprint(function) for name, function in self.measures.items()},
            **{name: made[name] for name in DECISIVE if name != "devices"},
        }  # fmt: skip

    def _values_of(self, path: str) -> str:
        """The values of a path: how they are given, if that is short, and a hash of all."""
        all_of_them = hashlib.blake2b(repr(self.values[path]).encode(), digest_size=8).hexdigest()
        given = self.vary.get(path)
        return f"{given} ({all_of_them})" if isinstance(given, (str, int, float)) else all_of_them


def _fingerprint(x: object) -> str | float | None:
    """A value for JSON; arrays and functions by a digest."""
    if x is None or isinstance(x, str | int | float):
        return x
    if not callable(x):
        x = np.asarray(x)
        return _digest(f"{x.dtype} {x.shape}".encode(), x.tobytes())
    try:
        return _digest(inspect.getsource(x).encode())
    except (OSError, TypeError):  # no source: typed code, or not a Python function
        code = getattr(x, "__code__", None)
        return _digest(code.co_code, repr(code.co_consts).encode()) if code else repr(type(x))


def _digest(*parts: bytes) -> str:
    return hashlib.blake2b(b"".join(parts), digest_size=16).hexdigest()
