"""Ctrl-C ends the program at once, with exit code 130; a run with results to keep ends after its current piece.

An exception does not suffice: while modules are imported, or a library calls back, some are swallowed, and others
become tracebacks.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn

INTERRUPTED = 130
SHOW_CURSOR = "\x1b[?25h"  # progress bars hide it


def end_at_once() -> None:
    """Let Ctrl-C end the program from here on."""
    signal.signal(signal.SIGINT, _end)


def raise_it() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from here on, in programs that only wait for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Gently:
    """A delayed Ctrl-C.  begun: whether there are results to keep.  interrupted: whether Ctrl-C came since then; a
    second one ends the program at once."""

    def __init__(self) -> None:
        self.begun = self.interrupted = False

    def begin(self) -> None:
        """Delay Ctrl-C until the next call of this method, which raises KeyboardInterrupt."""
        if self.interrupted:
            raise KeyboardInterrupt
        if not self.begun and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._interrupt)
        self.begun = True

    def _interrupt(self, *_: object) -> None:
        self.interrupted = True
        signal.signal(signal.SIGINT, _end)


@contextlib.contextmanager
def gently() -> Iterator[Gently]:
    """Let the block delay Ctrl-C; afterwards it acts as before."""
    before, mode = signal.getsignal(signal.SIGINT), Gently()
    try:
        yield mode
    finally:
        if mode.begun and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _end(*_: object) -> NoReturn:
    shown = sys.stderr is not None and sys.stderr.isatty()
    with contextlib.suppress(OSError):
        os.write(2, f"{SHOW_CURSOR if shown else ''}interrupted\n".encode())
    os._exit(INTERRUPTED)
