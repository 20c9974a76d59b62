"""`@fence` and `one_function`: how XLA's CPU compiler is told where to cut and where to join.

`@fence` keeps it from fusing across a stage.

Fusion on the CPU duplicates every shared subexpression into each of its users. In a deep elementwise
program (a chain of links, each reading its parent's components a dozen times) the copies multiply at
every level: four links 7 us, six links 3.4 ms, seven 248 ms. `optimization_barrier` is erased before
fusion there. A call that is not inlined is not fused across, and it survives vmap, jvp, grad, scan
and while. One fence a stage is enough.

`one_function` makes it compile a whole call to a single machine function, where it would run one thunk an
operation (50 ns and more each, and a loop of a scene's step has a thousand). It is what XLA does by itself with
loops that touch less than a kilobyte. A seven-joint step falls from 14 us to 1 us. Not everything compiles that
way (no scatter, sort, LAPACK, callbacks; no operation large enough to be split over threads): the caller must be
ready to do without.

Elsewhere (GPU, TPU) both change nothing: fusion there keeps shared values in registers.
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


def one_function(outputs: T) -> T:
    """Tag the jitted call that made these outputs: it is to become one machine function."""
    if not available():
        return outputs
    tags = {"inlineable": "false", "xla_cpu_small_call": "true"}
    return jax.tree.map(lambda x: set_xla_metadata(x, **tags), outputs)  # type: ignore[misc]


def available() -> bool:
    """Whether there is a compiler here that needs to be told."""
    return set_xla_metadata is not None and jax.default_backend() == "cpu"
