"""A world that gets more spare bodies while it runs: made anew beside it, and changed over.

Spare bodies come behind all else (`pool.py`), so what a smaller world has of links, coordinates, shapes and trees is
the beginning of what the larger one has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import numpy as np

from ...engine.state import State
from .asleep import Asleep
from .parts import Parts
from .standing import Standing

T = TypeVar("T")


def in_background(work: Callable[[], T]) -> Future[T]:
    """Work that is done on a thread of its own. A program that ends waits for it: compilers do not bear to be cut."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as wrong:
            future.set_exception(wrong)

    threading.Thread(target=run, name="carom.Live grows").start()
    return future


def beginning(old: Any, new: Any) -> Any:
    """`new`, whose first rows are those of `old`."""
    made = np.array(new)
    made[: len(old)] = old
    return made


def larger(standing: Standing, parts: Parts) -> Standing:
    """How a smaller world stands, in a larger one: what it did not have waits in the pool."""
    start, old, asleep = parts.start, standing.state, standing.asleep
    state = State(beginning(old.q, start.state.q), beginning(old.v, start.state.v), old.t)
    sleeps = Asleep(
        parts.model.topology,
        beginning(asleep.island, start.asleep.island),
        beginning(asleep.motors, start.asleep.motors),
    )
    return Standing(parts.model, parts.spares, state, sleeps)
