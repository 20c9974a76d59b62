"""The path of programs on a device: machine code, a kernel, or XLA's program."""

from __future__ import annotations

import importlib.util

from .warp.driver import DriverError, device_count


def path_on(platform: str) -> str:
    """The path of programs on a platform, by jax's name: "cpu", "cuda", "tpu"."""
    if importlib.util.find_spec("llvmlite") is None:
        return "XLA's program (there is no llvmlite)"
    if platform == "cpu":
        return "machine code"
    if platform not in ("cuda", "gpu"):
        return "XLA's program"
    try:
        return "a kernel" if device_count() else "XLA's program (no driver of NVIDIA's was found)"
    except DriverError as why:
        return f"XLA's program ({why})"
