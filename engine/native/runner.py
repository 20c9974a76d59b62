"""Who runs a lane."""

from __future__ import annotations

import enum


class Runner(enum.Enum):
    CPU = "a thread of a CPU, in its vectors"
    WARP = "the 32 threads of a GPU's warp, an element of each vector each"
    THREAD = "a thread of a GPU, as 31 others beside it run theirs"

    @property
    def on_gpu(self) -> bool:
        return self is not Runner.CPU
