"""Progress of a run: a bar on a terminal; elsewhere a line for each long stage of compiling."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ...engine.native.stages import watch_stages
from .interrupts import Gently, gently
from .output import err

if TYPE_CHECKING:
    from .. import running


LONG = 0.5  # seconds: without a terminal, shorter stages print no line


class Shown:
    """The callback after each piece; from the first piece on, Ctrl-C keeps the results so far.

    pieces: their number so far.  first: seconds until the first was done, mostly compiling.
    seconds: time after that, in which `simulated` seconds were computed."""

    def __init__(self, bar: Progress, task: object, interrupts: Gently) -> None:
        self._bar, self._task, self._started = bar, task, time.perf_counter()
        self._interrupts = interrupts
        self.pieces, self.first, self.seconds, self._from, self.simulated = 0, 0.0, 0.0, 0.0, 0.0

    def __call__(self, progress: running.Progress) -> None:
        self._interrupts.begin()
        now = time.perf_counter() - self._started
        self.pieces += 1
        if self.pieces == 1:
            self.first, self._from = now, progress.t
        self.seconds, self.simulated = now - self.first, progress.t - self._from
        rate = f", {self.rate:.3g} s/s" if self.rate else ""
        words = f"{progress.t:.4g} of {progress.duration:.4g} s, {progress.events} impacts{rate}"
        self._bar.update(self._task, total=progress.duration, completed=progress.t, description=words)  # type: ignore[arg-type]

    @property
    def rate(self) -> float | None:
        """Simulated seconds per second, of each lane; None: the run is too short to tell."""
        return self.simulated / self.seconds if self.seconds > 0.01 and self.simulated > 0 else None

    def working(self, words: str) -> contextlib.AbstractContextManager[object]:
        return err.status(words)


@contextlib.contextmanager
def progress_bar(name: str, lanes: int | None) -> Iterator[Shown]:
    """Show a bar, which is removed at the end."""
    columns = (SpinnerColumn(), BarColumn(bar_width=30), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        many = f", {lanes} lanes" if lanes else ""
        task = bar.add_task(f"{name}{many}: starting", total=None)

        def compiling(program: str, stage: str, seconds: float | None) -> None:
            if seconds is None:
                bar.update(task, description=f"{name}{many}: {stage}, the first time only")
            elif seconds > LONG and not err.is_terminal:
                err.print(f"{name}{many}: {stage} took {seconds:.1f} s, the first time only")

        with watch_stages(compiling), gently() as interrupts:
            yield Shown(bar, task, interrupts)
