"""What is traced as it would be where a GPU of NVIDIA's is jax's device, though there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

import jax

from carom.engine.algebra import fence


@contextlib.contextmanager
def as_on_gpu() -> Iterator[None]:
    """Meanwhile. What jax traced before it traces again, and what it traces now it forgets."""
    jax.clear_caches()
    gpu, kernels = mock.Mock(return_value="gpu"), mock.Mock(return_value=True)
    with mock.patch.object(jax, "default_backend", gpu), mock.patch.object(fence, "_kernels", kernels):
        yield
    jax.clear_caches()
