"""What is traced as it would be where a GPU of NVIDIA's is jax's device, though there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import jax

from carom.engine.algebra import fence
from carom.tests.oracles.programs import equations


def forget_kernels(run: Callable[[Any], Any], lanes: Any) -> None:
    """Those of the programs that a run calls, as in a new process."""
    for equation in equations(jax.make_jaxpr(run)(lanes).jaxpr):
        if "program" in equation.params:
            equation.params["program"].__dict__.pop("kernel", None)


@contextlib.contextmanager
def as_on_gpu() -> Iterator[None]:
    """Meanwhile. What jax traced before it traces again, and what it traces now it forgets."""
    jax.clear_caches()
    gpu, kernels = mock.Mock(return_value="gpu"), mock.Mock(return_value=True)
    with mock.patch.object(jax, "default_backend", gpu), mock.patch.object(fence, "_kernels", kernels):
        yield
    jax.clear_caches()
