"""`@fence`: how XLA's CPU compiler is kept from fusing across a stage.

Fusion on the CPU duplicates every shared subexpression into each of its users. In a deep elementwise
program (a chain of links, each reading its parent's components a dozen times) the copies multiply at
every level: four links 7 us, six links 3.4 ms, seven 248 ms. `optimization_barrier` is erased before
fusion there. A call that is not inlined is not fused across, and it survives vmap, jvp, grad, scan
and while. One fence a stage is enough.

Elsewhere (GPU, TPU) it changes nothing: fusion there keeps shared values in registers.
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
T = TypeVar("T")


def fence(stage: F) -> F:
    """Decorate one stage of an algorithm: arguments and result are pytrees, nothing is static."""

    @jax.jit
    @functools.wraps(stage)
    def compiled(*args):
        with set_xla_metadata(inlineable=None):  # type: ignore[misc]  # jnp.where is a call too: not a fence
            return stage(*args)

    @functools.wraps(stage)
    def call(*args):
        if not available():
            return stage(*args)
        with set_xla_metadata(inlineable="false"):  # type: ignore[misc]
            return compiled(*args)

    return call  # type: ignore[return-value]


def settled(x: T) -> T:
    """The same values, computed once for all who read them.

    Fusion may compute an expression anew for each of its readers, and round it differently each time (it contracts
    products and sums where it can). Where a decision hangs on it, the sign of a number that is nearly zero, two
    components of one vector could decide differently. Pass what a decision is made from through here.
    """
    return _once(x) if available() else jax.lax.optimization_barrier(x)


@fence
def _once(x):
    return x


def available() -> bool:
    """Whether there is a compiler here that needs to be told."""
    return set_xla_metadata is not None and jax.default_backend() == "cpu"
