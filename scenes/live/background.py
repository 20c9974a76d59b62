"""Work on a thread of its own, beside the running world."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(work: Callable[[], T]) -> Future[T]:
    """Run work on a thread of its own. A program that ends waits for it: compilers must not be interrupted."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as wrong:
            future.set_exception(wrong)

    threading.Thread(target=run, name="carom.Live compiles").start()
    return future
