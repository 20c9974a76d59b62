"""Stages of the compiler, reported to those who wait for it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

# (program, stage, None) when a stage begins, (program, stage, seconds) when it has ended
Watcher = Callable[[str, str, float | None], None]

_watchers: list[Watcher] = []


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
    yield
    for watcher in _watchers:
        watcher(program, name, time.perf_counter() - started)
