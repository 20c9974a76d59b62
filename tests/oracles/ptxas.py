"""NVIDIA's assembler, from a wheel: what a kernel needs on a GPU, without one."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

PLACES = ("cuda_nvcc/bin/ptxas", "cu13/bin/ptxas", "cu12/bin/ptxas")


class Assembled(NamedTuple):
    """registers: of a thread.  stack: bytes of a thread, most of it for registers across calls.  stores, loads: bytes
    of registers that had to go to memory.  size: of the machine code [bytes]."""

    registers: int
    stack: int
    stores: int
    loads: int
    size: int


def assembler() -> Path | None:
    """Of the wheel nvidia-cuda-nvcc."""
    found = importlib.util.find_spec("nvidia")
    folders = [] if found is None else list(found.submodule_search_locations or ())
    files = [Path(folder) / place for folder in folders for place in PLACES]
    return next((file for file in files if file.exists()), None)


def assembled(ptx: str, architecture: str, kernel: str = "lanes") -> Assembled:
    """Raises what the assembler says against it."""
    program = assembler()
    assert program is not None, "there is no ptxas: pip install nvidia-cuda-nvcc"
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "lanes.ptx", Path(folder) / "lanes.cubin"
        source.write_text(ptx)
        command = [program, f"-arch={architecture}", "-v", source, "-o", made]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            raise AssertionError(ran.stderr[-2000:])
        size = made.stat().st_size
    said = ran.stderr[ran.stderr.index(f"Function properties for {kernel}\n") :]
    of = lambda what: int(re.search(rf"(\d+) (?:bytes )?{what}", said)[1])  # pyright: ignore  # noqa: E731
    return Assembled(of("registers"), of("stack frame"), of("spill stores"), of("spill loads"), size)
