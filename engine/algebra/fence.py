"""`@fence` keeps XLA's CPU compiler from fusing across a stage.

Fusion on the CPU duplicates every shared subexpression into each of its users. In a deep elementwise
program (a chain of links, each reading its parent's components a dozen times) the copies multiply at
every level: four links 7 us, six links 3.4 ms, seven 248 ms. `optimization_barrier` is erased before
fusion there. A call that is not inlined is not fused across, and it survives vmap, jvp, grad, scan
and while. One fence per stage is enough.

Elsewhere (GPU, TPU) there are no fences: fusion there keeps shared values in registers. If lanes have programs of
their own, fences stay in the jaxpr on a GPU as on a CPU, so that both compile the same jaxpr.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.extend

try:
    from jax.experimental.xla_metadata import set_xla_metadata
except ImportError:  # an older jax computes the same without it, only slower
    set_xla_metadata = None

F = TypeVar("F", bound=Callable)
T = TypeVar("T")


def fence(stage: F) -> F:
    """Decorate one stage of an algorithm: arguments and result are pytrees, nothing is static."""

    @jax.jit
    @functools.wraps(stage)
    def run_stage(*args):
        with set_xla_metadata(inlineable=None):  # type: ignore[misc]  # jnp.where is a call too: not a fence
            return stage(*args)

    @functools.wraps(stage)
    def call(*args):
        if not lane_programs():
            return stage(*args)
        if jax.default_backend() != "cpu":
            return run_stage(*args)
        with set_xla_metadata(inlineable="false"):  # type: ignore[misc]
            return run_stage(*args)

    return call  # type: ignore[return-value]


def compute_once(x: T) -> T:
    """Return the same values, computed once for all their readers.

    Fusion may compute an expression again for each of its readers, and round it differently each time (it contracts
    products and sums where it can). If a decision depends on it, e.g. on the sign of a number that is nearly zero, two
    components of one vector could decide differently. Pass the arguments of a decision through here.
    """
    return _once(x) if lane_programs() else jax.lax.optimization_barrier(x)


@fence
def _once(x):
    return jax.lax.optimization_barrier(x)


def lane_programs() -> bool:
    """Return whether each lane has a program of its own on this device (`engine/native/`): machine code on a CPU, a
    kernel on NVIDIA's GPUs. Elsewhere XLA's programs compute all lanes in step."""
    backend = jax.default_backend()
    return set_xla_metadata is not None and (backend == "cpu" or (backend == "gpu" and _kernels()))


@functools.cache
def _kernels() -> bool:
    nvidia = "cuda" in jax.extend.backend.get_backend().platform_version
    return nvidia and importlib.util.find_spec("llvmlite") is not None
