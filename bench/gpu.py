"""Lanes on a GPU: a comparison of its results with the CPU's, then its speed.

It imports nothing that a machine with a GPU may lack: jax, numpy and llvmlite are enough. Each scene has its own
process: they compile in parallel, and use the GPU one at a time. One that hangs is stopped, and the others go on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import fcntl
import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

import carom
from carom.engine.results import Code

from . import prepared
from .gpu_cases import CHECKED, GpuCase, case, load_case

LANES = (1024, 8192, 65536)

FULL = 4096  # lanes: fewer take as long as these
MOST_HELD = 30.0  # [s] time that the run of one scene may hold the GPU
WHOLE = 400.0  # [s] limit for a scene, including compilation
_LOCK = "CAROM_BENCH_LOCK"
_ROW = "| {name} | {lanes} | {rate:.0f} | {ticks:.3g} | {memory:.1f} | {seconds:.3f} | {codes} |"


def suite(scenes: list[str], sizes: tuple[int, ...], seconds: float, folder: Path | None, more: list[str]) -> int:
    """Print progress, and a table of all scenes. The exit status says whether all results were right.

    more: arguments of each scene's process.
    """
    command = [sys.executable, "-u", "-m", "bench.run", "gpu", *more, "--duration", str(seconds)]
    command += ["--prepared", str(folder)] if folder else []
    sized = ["--sizes", *map(str, sizes)]
    with tempfile.NamedTemporaryFile() as lock, ThreadPoolExecutor(len(scenes)) as pool:
        own = {**os.environ, _LOCK: lock.name, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        tell = functools.partial(_rows_of_process, environment=own)
        found = dict(
            zip(scenes, pool.map(tell, scenes, ([*command, "--alone", x, *sized] for x in scenes)), strict=True)
        )
    print("\n| scene | lanes | lane-seconds a second | ticks a second | KB a lane | seconds | codes |")
    print("|---|---|---|---|---|---|---|")
    for name, rows in found.items():
        for row in rows:
            if "lanes" in row:
                print(_ROW.format(name=name, **row))
    right = all(any(row.get("right") for row in rows) for rows in found.values())
    print("the CPU's bits" if right else "not the CPU's bits, see above")
    return 0 if right else 1


def _rows_of_process(name: str, command: list[str], environment: dict[str, str]) -> list[dict[str, Any]]:
    """Run a scene's process and return its rows, which are printed as they come."""
    rows, rest = [], []
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=environment, text=True, stdout=pipe, stderr=subprocess.STDOUT)
    timer = threading.Timer(WHOLE, process.kill)
    timer.start()
    for line in process.stdout or ():
        if line.startswith("\t"):
            rows.append(json.loads(line))
            print(f"{name}: {line.strip()}", flush=True)
        else:
            rest.append(line)
    timer.cancel()
    if process.wait():
        print(f"{name}: ended with {process.returncode}: {''.join(rest)[-1500:]}", flush=True)
    return rows


def alone(name: str, sizes: tuple[int, ...], seconds: float, folder: Path | None) -> int:
    """Run one scene, and print a line of JSON after a tab for each result."""
    one = load_case(name, folder) if folder else case(name, seconds)
    with prepared.kernels_of(folder) as kernels:
        began = time.perf_counter()
        made = {}
        for lanes in (CHECKED, *sizes):
            made[lanes] = jax.jit(one.run).lower(one.lanes(lanes)).compile()
    _say(compiled=time.perf_counter() - began, kernels=kernels, device=jax.devices()[0].device_kind)
    answers = prepared.answers(name, folder) if folder else _on_cpu(one)
    with _lock_device():
        call, lanes = made[CHECKED], one.lanes(CHECKED)
        took, first = _time_call(call, lanes)
        _say(first=took, **compare(first, answers))
        before = CHECKED
        for count in sizes:
            lanes = one.lanes(count)
            awaited = took * max(1.0, count / max(before, FULL))
            if awaited > MOST_HELD / 2:
                _say(left_out=count, for_it_would_take=awaited)
                break
            before = count
            took, ran = min((_time_call(made[count], lanes) for _ in range(1 if took > 1 else 3)), key=_first)
            codes, numbers = np.unique(np.asarray(ran.code), return_counts=True)
            used = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
            _say(
                lanes=count, seconds=took, rate=count * one.keywords["duration"] / took,
                ticks=int(np.asarray(ran.stats.ticks, np.int64).sum()) / took, memory=used / 1024 / count,
                codes={Code(int(c)).name: int(n) for c, n in zip(codes, numbers, strict=True)},
            )  # fmt: skip
    _say(energy_gained=_energy_gain(one, first))  # [J], for a robot the work of its motors
    return 0


def _energy_gain(one: GpuCase, ran: Any) -> float:
    """Return the energy gained by the lane that gained most [J], as the CPU computes it."""
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu):
        model, *states = jax.device_put((one.model, one.lanes(CHECKED), ran.state), cpu)
        before, after = (jax.vmap(lambda state: carom.energy(model, state).total)(state) for state in states)
        return float((after - before).max())


def _first(pair: tuple[float, Any]) -> float:
    return pair[0]


def _say(**row: Any) -> None:
    print("\t" + json.dumps(row), flush=True)


def _time_call(call: Any, *arguments: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    ran = jax.block_until_ready(call(*arguments))
    return time.perf_counter() - began, ran


def _on_cpu(one: GpuCase) -> list[np.ndarray]:
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu):
        model, lanes = jax.device_put((one.model, one.lanes(CHECKED)), cpu)
        there = dataclasses.replace(one, model=model)
        return [np.asarray(x) for x in jax.tree.leaves(jax.jit(there.run)(lanes))]


def compare(ran: Any, answers: list[np.ndarray]) -> dict[str, Any]:
    """Compare with the CPU's results.

    Return how many have its bits; and for the others the names, how many numbers differ, and by how much.
    """
    paths, differ = jax.tree_util.tree_leaves_with_path(ran), {}
    for (path, leaf), answer in zip(paths, answers, strict=True):
        mine = np.asarray(leaf)
        if mine.tobytes() != answer.tobytes():
            off = np.abs(mine.astype(np.float64) - answer.astype(np.float64))
            differ[jax.tree_util.keystr(path)] = int(np.sum(mine != answer)), float(np.nanmax(off))
    return {"right": not differ, "same": len(paths) - len(differ), "of": len(paths), "differ": differ}


@contextlib.contextmanager
def _lock_device() -> Iterator[None]:
    """Lock the GPU for this process; a process that holds it too long is stopped."""
    with open(os.environ.get(_LOCK, os.devnull)) as lock:
        with contextlib.suppress(OSError):  # a device file cannot be locked, and need not be
            fcntl.flock(lock, fcntl.LOCK_EX)
        faulthandler.dump_traceback_later(3 * MOST_HELD, exit=True, file=sys.__stderr__ or sys.stderr)
        yield
        faulthandler.cancel_dump_traceback_later()
