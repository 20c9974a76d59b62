"""The requested precision, or jax's own."""

from __future__ import annotations

import jax
import numpy as np
from numpy.typing import DTypeLike

from . import check


def checked_dtype(where: str, dtype: DTypeLike | None) -> np.dtype:
    """float32 or float64, checked.  where: the function that has the argument."""
    wide = bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]
    if dtype is None:
        return np.dtype("float64" if wide else "float32")
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in ("float32", "float64"):
        check.reject(where, "dtype", dtype, "it must be float32 or float64: leave it out for jax's choice")
    if name == "float64" and not wide:
        fix = 'call jax.config.update("jax_enable_x64", True) before any array is made, or set JAX_ENABLE_X64=1'
        check.reject(where, "dtype", name, f"jax's x64 mode is off: {fix}")
    return np.dtype(name)
