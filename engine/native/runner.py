"""Runners: a CPU or a GPU, with the sizes that code is made for."""

from __future__ import annotations

import enum
import os

from .arena import THREADS

VARIABLE = "CAROM_GPU_LANES"  # of the environment: the runner of a lane on a GPU, "thread" or "warp"


class Runner(enum.Enum):
    CPU = "a thread of a CPU, in its vectors"
    WARP = "the 32 threads of a GPU's warp, an element of each vector each"
    THREAD = "a thread of a GPU, as 31 others beside it run theirs"

    @property
    def on_gpu(self) -> bool:
        return self is not Runner.CPU

    @property
    def small(self) -> int:
        """Largest number of elements in one register, of a vector type; larger values are in memory. A thread has no
        vectors: a loop over memory is less code, and a GPU's instruction cache is small."""
        return 4 if self is Runner.THREAD else 16

    @property
    def strip(self) -> int | None:
        """Number of elements that a loop over a long array takes at a time; None: as many as fit in a vector."""
        return {Runner.WARP: THREADS, Runner.THREAD: 1}.get(self)


def of_gpu(alike: bool) -> Runner:
    """The runner of lanes on a GPU.  alike: whether lanes take the same branches of the program, so that no thread
    waits for others."""
    requested = os.environ.get(VARIABLE) or ("thread" if alike else "warp")
    if requested not in ("thread", "warp"):
        raise ValueError(f"{VARIABLE} is {requested!r}; it may be thread or warp")
    return Runner.THREAD if requested == "thread" else Runner.WARP
