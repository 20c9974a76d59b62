"""Timing: compilation is separate, calls block on their outputs, peers alternate in the same run."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import jax

Call = Callable[[], Any]


@dataclass(frozen=True)
class Timed:
    """Seconds per call: median and minimum over the rounds; cpu: of all threads of this process, median."""

    median: float
    best: float
    cpu: float


def compile_seconds(function: Callable, *arguments: Any) -> tuple[Any, float]:
    """Return the compiled function and the seconds from Python to machine code (trace, lower, compile), cold."""
    jax.clear_caches()
    start = time.perf_counter()
    compiled = jax.jit(function).lower(*arguments).compile()
    return compiled, time.perf_counter() - start


def in_turn(calls: dict[str, Call], rounds: int = 15, seconds: float = 0.05) -> dict[str, Timed]:
    """Time several calls A B A B ..., so that a drift of the machine's speed affects all alike.

    Each call must return its outputs, and is timed until they are ready. A round of a call repeats it for `seconds`.
    """
    repeats = {}
    for name, call in calls.items():
        wait(call())
        once, _ = _round(call, 1)
        repeats[name] = max(1, round(seconds / max(once, 1e-7)))
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            samples[name].append(_round(call, repeats[name]))
    times = {name: list(zip(*s, strict=True)) for name, s in samples.items()}
    return {name: Timed(statistics.median(t), min(t), statistics.median(cpu)) for name, (t, cpu) in times.items()}


def _round(call: Call, repeats: int) -> tuple[float, float]:
    """Return wall-clock seconds, and those of this process's threads."""
    start, used = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        wait(call())
    return (time.perf_counter() - start) / repeats, (time.process_time() - used) / repeats


def wait(outputs: Any) -> None:
    """Block until every output is ready."""
    jax.block_until_ready(outputs)


@contextlib.contextmanager
def left_to_xla() -> Iterator[None]:
    """Let XLA compile all programs in this context, as if `engine/native/` could not.

    jax caches programs of another matmul precision separately, so one function can be called both ways alternately.
    """
    from carom.engine.native.program import Program

    none = property(lambda _: None)
    surroundings = mock.patch.dict("os.environ", CAROM_CACHE="off")
    with surroundings, mock.patch.object(Program, "code", none), jax.default_matmul_precision("float32"):
        yield
