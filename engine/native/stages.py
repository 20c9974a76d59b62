"""Stages of the compiler, reported to those who wait for it."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator

# (program, stage, None) when a stage begins, (program, stage, seconds) when it has ended
Watcher = Callable[[str, str, float | None], None]

PATIENCE = 2.0  # [s] a person at a terminal is told of a stage that takes longer, once for each program

_watchers: list[Watcher] = []
_told: set[str] = set()


@contextlib.contextmanager
def watch_stages(watcher: Watcher) -> Iterator[None]:
    """Call the watcher at every stage of compiling in this context."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


@contextlib.contextmanager
def stage(program: str, name: str) -> Iterator[None]:
    started = time.perf_counter()
    for watcher in _watchers:
        watcher(program, name, None)
    timer = threading.Timer(PATIENCE, _tell, (program,))
    timer.daemon = True
    if not _watchers and sys.stderr.isatty():
        timer.start()
    collects = gc.isenabled()
    gc.disable()  # it would look through all of a growing program, again and again
    try:
        yield
    finally:
        timer.cancel()
        if collects:
            gc.enable()
    for watcher in _watchers:
        watcher(program, name, time.perf_counter() - started)


def _tell(program: str) -> None:
    if program not in _told:
        _told.add(program)
        print(f"carom: compiling {program}, once for this kind of scene", file=sys.stderr)
