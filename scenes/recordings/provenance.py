"""Provenance of a run: versions, machine, date, command; bits are reproduced only if DECISIVE ones are equal."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from numpy.typing import DTypeLike

# two runs agree bit by bit only if these do
DECISIVE = ("carom", "jax", "jaxlib", "numpy", "platform", "device", "devices", "dtype", "xla_flags")


def provenance(dtype: DTypeLike) -> dict[str, str]:
    """Provenance of a run of this process in this dtype; times are UTC."""
    import jax
    import jaxlib

    devices = jax.local_devices()
    return {
        "carom": _version("carom"),
        **{package.__name__: package.__version__ for package in (jax, jaxlib, np)},
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": f"{devices[0].platform}, {devices[0].device_kind}",
        "devices": str(len(devices)),
        "dtype": np.dtype(dtype).name,
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([os.path.basename(sys.argv[0] or "python"), *sys.argv[1:]]),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a folder, never installed
        return ""
