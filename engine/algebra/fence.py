"""`@fence`: keep XLA's CPU compiler from fusing across a stage.

Fusion on the CPU duplicates every shared subexpression into each of its users. In a deep elementwise
program (a chain of links, each reading its parent's components a dozen times) the copies multiply at
every level: four links 7 us, six links 3.4 ms, seven 248 ms. `optimization_barrier` is erased before
fusion there. A call that is not inlined is not fused across, and it survives vmap, jvp, grad, scan
and while. One fence a stage is enough.

Elsewhere (GPU, TPU) the decorator changes nothing: fusion there keeps shared values in registers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import jax

try:
    from jax.experimental.xla_metadata import set_xla_metadata
except ImportError:  # a jax without it still computes the same, only slower
    set_xla_metadata = None

F = TypeVar("F", bound=Callable)


def fence(stage: F) -> F:
    """Decorate one stage of an algorithm: arguments and result are pytrees, nothing is static."""
    compiled = jax.jit(stage)

    @functools.wraps(stage)
    def call(*args):
        if set_xla_metadata is None or jax.default_backend() != "cpu":
            return stage(*args)
        with set_xla_metadata(inlineable="false"):
            return compiled(*args)

    return call  # type: ignore[return-value]
