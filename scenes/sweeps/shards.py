"""`carom.sweep` runs the missing shards, here or elsewhere, and concatenates all of them at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..formats.atomic import check_writable
from ..regression.runs import resolve_scene
from ..sources import SceneLike
from .measures import DEFAULT, Function, select_measures
from .parts import ShardFolder
from .plan import SweepPlan
from .result import Sweep, check_suffix, read_design, value_array

Shard = tuple[int, dict[str, np.ndarray]]


@dataclass(frozen=True)
class SweepProgress:
    """Progress of a sweep.

    done, lanes: of all lanes, with those of earlier calls.  here: lanes that this call has done.
    seconds: time of `timed` of these: all except those of the first shard, which compiles a program.
    """

    done: int
    lanes: int
    here: int
    timed: int
    seconds: float

    @property
    def rate(self) -> float | None:
        """Lanes per second; None: not known yet."""
        return self.timed / self.seconds if self.timed else None

    @property
    def left(self) -> float | None:
        """Seconds to the end, at this rate."""
        return (self.lanes - self.done) / self.rate if self.rate else None


def sweep(
    scene: SceneLike,
    *,
    vary: Mapping[str, object] | None = None,
    design: str | PathLike[str] | Mapping[str, Sequence[Any]] | None = None,
    lanes: int | None = None,
    measure: Iterable[str] | Mapping[str, Function | None] = DEFAULT,
    out: str | PathLike[str] | None = None,
    shard: int | None = None,
    seed: int = 0,
    part: tuple[int, int] | None = None,
    on: Any = None,
    workers: int | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
    **keywords: Any,
) -> Sweep:
    """Run many lanes of one scene with other numbers, shard by shard, and keep quantities of each lane.

    scene: a SceneSpec, a SceneBuilder, an import, or an argument of `carom.load`; a scene of the library runs as the
        library plays it.
    vary: path -> variation of a number, paths as in `--set`: "uniform(low, high)", "normal(mean, sd)",
        "loguniform(low, high)", "choice(a, b, c)"; or a grid, "linspace(first, last, n)" or a list of values. Grids are
        multiplied, the first path slowest, and repeated over the lanes.
    design: columns of values by their paths, row by row, repeated over the lanes; or a .csv or .parquet file of them.
    lanes: their number. None: that of the grid or the design.
    measure: names, or name -> a function (model, rollout) -> (lanes, ...), of a shard's lanes. Names: code,
        first_impact [s] (NaN: none), impacts, energy at the end and its loss [J], overlap, the deepest [m], ticks,
        rollbacks, resting, t, q, v at the end, position.NAME of a link at the end [m], max_speed of any centre of mass
        in the frames [m/s], at_rest: whether no speed at the end is above that below which contacts rest.
    out: a .parquet, .csv or .npz file. While it runs, finished shards are in the folder `OUT.parts` beside it: the same
        call after a kill computes the missing ones; another one is refused. None: nothing is kept meanwhile.
    shard: lanes that are run at once. None: up to 2000 whose frames take 64 MB. Results do not depend on it.
    seed: of the random values. Lane k's depend on it, the path and k alone.
    part: (k, n): run only every n-th shard from the k-th on, into the same folder, and return these; the call without
        it, when all are done, concatenates them. For arrays of jobs, see docs/batches.md.
    on: "dask": shards are tasks on `workers` processes of this machine; or a scheduler's address, or a Client.
    progress: called after each shard.
    keywords: of `carom.rollout`; duration is required, except for scenes of the library.
    A lane that fails keeps its code, and raises no error.
    """
    spec, _, keywords = resolve_scene(scene, "", keywords, "sweep")
    columns = design if isinstance(design, Mapping) else {} if design is None else read_design(design)
    if "duration" not in keywords:
        raise ValueError("duration is missing: say how long to run, in seconds")
    for name, value in (("lanes", lanes), ("shard", shard), ("workers", workers)):
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    measures = select_measures(measure, [link.name for link in spec.links])
    double = bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]
    plan = SweepPlan(spec, dict(vary or {}), dict(columns), int(seed), lanes, shard, keywords, measures, double)
    if out is not None:
        check_suffix(out)
        check_writable(out)
    mine = _share(part, plan.shards, out)
    if out is None:
        by_number = dict(_report_progress(_run(plan, mine, on, workers), plan, set(), progress))
        return _put_together(plan, [by_number[number] for number in mine], mine)
    parts = ShardFolder(Path(f"{fspath(out)}.parts"), plan.manifest)
    there = parts.finished_shards() & {*mine}
    missing = [number for number in mine if number not in there]
    try:
        for number, arrays in _report_progress(_run(plan, missing, on, workers), plan, there, progress):
            parts.write(number, arrays)
    except Exception:
        if part is None and not parts.finished_shards():  # a corrected call starts again
            parts.remove()
        raise
    result = _put_together(plan, [parts.read(number) for number in mine], mine)
    if part is None:
        result.write(out)
        parts.remove()
    return result


def _share(part: tuple[int, int] | None, shards: int, out: str | PathLike[str] | None) -> list[int]:
    """The shards to run."""
    if part is None:
        return list(range(shards))
    first, step = part
    if not 0 <= first < step:
        raise ValueError(f"part is {part}; give (k, n) with k from 0 to n - 1")
    if out is None:
        raise ValueError("part is for shards that several processes put into one folder: give out")
    return list(range(first, shards, step))


def _run(plan: SweepPlan, shards: Sequence[int], on: Any, workers: int | None) -> Iterator[Shard]:
    if on is None:
        yield from ((number, plan.run(number)) for number in shards)
        return
    try:
        from .on_dask import run_on_dask
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "distributed":
            raise
        raise ImportError("Dask is not installed: pip install 'carom[dask]'") from None
    if shards:
        fresh = replace(plan)  # without the values cached here
        yield from run_on_dask(fresh, shards, on, workers)


def _report_progress(
    shards: Iterator[Shard], plan: SweepPlan, there: set[int], report: Callable[[SweepProgress], None] | None
) -> Iterator[Shard]:
    """The shards, with a report of progress after each."""
    before, here, first, started = sum(len(plan.lanes_of(number)) for number in there), 0, 0, 0.0
    for number, arrays in shards:
        yield number, arrays
        here += len(plan.lanes_of(number))
        if not first:
            first, started = here, time.perf_counter()
        if report is not None:
            report(SweepProgress(before + here, plan.lanes, here, here - first, time.perf_counter() - started))


def _put_together(plan: SweepPlan, parts: Sequence[dict[str, np.ndarray]], shards: Sequence[int]) -> Sweep:
    """Concatenate shards in order into one result."""
    lanes = np.concatenate([np.zeros(0, int), *(np.array(plan.lanes_of(number)) for number in shards)])
    arrays = {"lane": lanes}
    arrays |= {path: value_array(values)[lanes] for path, values in plan.values.items()}
    if parts:
        arrays |= {name: np.concatenate([x[name] for x in parts]) for name in plan.measures}
    return Sweep(arrays, tuple(plan.values), tuple(plan.measures), plan.manifest, plan.models.compiled)
