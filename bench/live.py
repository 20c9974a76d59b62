"""Frames of `carom.Live` as a game would play them: how long the longest take, and whether anything was compiled.

One core, single precision, 60 Hz. The state is saved in every frame and the poses read, as a game with rollback does.
"""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any

import jax
import numpy as np

from carom.scenes.live.world import Live

SCENES: dict[str, dict[str, Any]] = {"stack": {}, "ragdoll": {}, "pool_break": {}}
FRAMES, AGAIN = 2000, 8  # of a run; that a game with rollback plays again in one
BUDGET = 1e3 / 60  # [ms] a frame


def suite(scenes: list[str], frames: int = FRAMES) -> int:
    """Print a line for each scene; the exit status: whether nothing was compiled after the start."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    compiled: list[str] = []

    def told(event: str, duration_secs: float, **_: Any) -> None:
        if "backend_compile" in event:
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(told)
    print(f"{frames} frames of 1/60 s, one core, f32; milliseconds")
    columns = ("start s", "p50", "p99", "most", "late %", "8 again", "behind", "compiled")
    print(f"{'scene':>12}", *(f"{x:>8}" for x in columns))
    quiet = True
    for name in scenes:
        begin = perf_counter()
        world = Live(name, dtype="float32", **SCENES[name])
        start, before = perf_counter() - begin, len(compiled)
        times, saves, behind = np.empty(frames), [], 0.0
        for k in range(frames):
            begin = perf_counter()
            saves.append(world.save())
            world.step()
            world.poses()
            times[k] = 1e3 * (perf_counter() - begin)
            behind = max(behind, world.behind)
        again = _again(world, saves)
        p50, p99 = np.percentile(times, (50, 99))
        late, new = (times > BUDGET).mean(), len(compiled) - before
        quiet &= new == 0
        cells = (start, p50, p99, times.max(), 100 * late, again, behind)
        print(f"{name:>12}", *(f"{x:8.2f}" for x in cells), f"{new:8d}", flush=True)
    return 0 if quiet else 1


def _again(world: Live, saves: list[bytes]) -> float:
    """Load a frame and play eight, the worst of some places in the run [ms]."""
    worst = 0.0
    for saved in saves[:: max(1, len(saves) // 50)]:
        begin = perf_counter()
        world.load(saved)
        for _ in range(AGAIN):
            world.step()
        worst = max(worst, 1e3 * (perf_counter() - begin))
    return worst
