"""The number of lanes in a block: they run side by side as elements of one vector."""

from __future__ import annotations

import jax
import numpy as np
from numpy.typing import DTypeLike

from .arena import THREADS
from .runner import Runner, of_gpu

VECTOR = 64  # bytes, of a CPU's


def side_by_side(dtype: DTypeLike) -> int:
    """Number of lanes in a CPU's vector; one on a GPU, where a thread runs each lane."""
    if jax.default_backend() == "gpu":
        return 1 if of_gpu(True) is Runner.THREAD else THREADS
    return VECTOR // np.dtype(dtype).itemsize
