"""Who runs a lane."""

from __future__ import annotations

import enum
import os

from .arena import THREADS

VARIABLE = "CAROM_GPU_LANES"  # of the environment: who runs a lane on a GPU, "thread" or "warp"


class Runner(enum.Enum):
    CPU = "a thread of a CPU, in its vectors"
    WARP = "the 32 threads of a GPU's warp, an element of each vector each"
    THREAD = "a thread of a GPU, as 31 others beside it run theirs"

    @property
    def on_gpu(self) -> bool:
        return self is not Runner.CPU

    @property
    def small(self) -> int:
        """Elements: so many are one register, of a vector type; more are an array in memory. A thread has no vectors:
        what is a loop over memory is less code, and of that a GPU has never enough at hand."""
        return 4 if self is Runner.THREAD else 16

    @property
    def strip(self) -> int | None:
        """Elements that a loop over a long array takes at a time; None: as many as a vector of theirs has."""
        return {Runner.WARP: THREADS, Runner.THREAD: 1}.get(self)


def of_gpu(alike: bool) -> Runner:
    """Who runs a lane on a GPU. alike: whether lanes go the same way through the program, so that no thread waits for
    what others do."""
    asked = os.environ.get(VARIABLE) or ("thread" if alike else "warp")
    if asked not in ("thread", "warp"):
        raise ValueError(f"{VARIABLE} is {asked!r}; it may be thread or warp")
    return Runner.THREAD if asked == "thread" else Runner.WARP
