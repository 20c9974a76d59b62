"""Carom's programs as a warp of a GPU runs them, on this machine's CPU: 32 threads that take turns (`warp.c`).

The text is the GPU's, except what only a GPU knows: shuffles, waiting, the number of a thread. Needs gcc and x86-64.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import platform
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np

from carom.engine.native import code, machine, program
from carom.engine.native.arena import THREADS
from carom.engine.native.runner import Runner
from carom.engine.native.warp import driver
from carom.engine.native.warp.code import COUNTER, kernel_of
from carom.engine.native.warp.dialect import Dialect
from carom.engine.native.warp.launch import launch_text

_numbers = itertools.count()
BLOCK = 2  # warps, or one alone
SOURCE = Path(__file__).with_suffix(".c")
EMULATED = Dialect(
    "call i32 @warp_shuffle(i32 {x}, i32 {source})",
    "call void @warp_sync()",
    "call i32 @warp_thread()",
    ("%warp = call i64 @warp_number()",),
    "void",
    "ptr",
    """declare i32 @warp_shuffle(i32, i32)
declare void @warp_sync()
declare i32 @warp_thread()
declare i64 @warp_number()
declare void @warp_mark(i32)
attributes #0 = { nounwind noinline }""",
    ("fmod", "fmodf", "erf", "erff"),
    "call void @warp_mark(i32 PHASE)",
)


def missing() -> str:
    """What this needs and is not here."""
    if platform.machine() != "x86_64":
        return "x86-64"
    return "" if shutil.which("gcc") else "gcc"


@functools.cache
def emulator() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "warp.so"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", SOURCE, "-o", made], check=True)
        library = ctypes.CDLL(str(made))
    library.warp_waits.restype = ctypes.c_int64
    library.warp_begin.argtypes = [ctypes.c_uint64]
    own = (f"warp_{name}" for name in ("shuffle", "sync", "thread", "number", "mark", "tally", "call"))
    for name in (*own, *driver.CALLED):
        machine.llvm().add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    return library


class _Kernel:
    """As `warp/code.py` has it, for the emulator in place of a driver."""

    grain, code = 1, b""

    def __init__(self, made: code.LaneText, warps: int, tally: Tally | None) -> None:
        self._beside = THREADS if made.runner is Runner.THREAD else 1
        self.opens, self._arena, self._warps = made.opens, made.arena * self._beside, warps
        kernel = kernel_of(made, EMULATED)
        text = "\n".join(
            [tally.of(kernel) if tally else kernel, launch_text(1 + len(made.inputs), len(made.outputs) + 1), _CALL]
        )
        self._loaded = machine.LoadedCode(machine.assemble(text, machine.target()))
        self._loaded.call("set_function", 0, self._loaded.address("lanes"))
        self._name = f"carom_emulated_{next(_numbers)}"
        capsule = jax.ffi.pycapsule(self._loaded.address("called"))
        jax.ffi.register_ffi_target(self._name, capsule, platform="cpu")

    def register(self) -> str:
        return self._name

    def scratch(self, lanes: int) -> list[Any]:
        warps = min(-(-lanes // self._beside), self._warps)
        block = min(warps, BLOCK)
        return [jax.ShapeDtypeStruct((-(-warps // block), block, self._arena + COUNTER), np.uint8)]

    def description(self) -> dict[str, Any]:
        return {}


_CALL = """
declare ptr @warp_call(ptr, ptr)
define ptr @called(ptr %frame) {
  %failed = call ptr @warp_call(ptr @launched, ptr %frame)
  ret ptr %failed
}"""


class Tally:
    """How many instructions of each kind a thread executes, as the text has them. What costs nothing on a GPU is left
    out: addresses, which are part of an access, other names for the same bits, and jumps to what comes next."""

    FREE = ("getelementptr", "bitcast", "freeze", "phi", "br label", "ret")

    def __init__(self) -> None:
        self._blocks: list[Counter[str]] = []

    def of(self, text: str) -> str:
        """The text, with a call at the start of each block."""
        lines: list[str] = ["declare void @warp_tally(i32)"]
        waiting = False
        for line in text.split("\n"):
            if line.endswith(":") and not line.startswith(" "):
                self._blocks.append(Counter())
                waiting = True
            elif line.startswith("  "):
                done = line.strip().split(" = ")[-1]
                if waiting and not done.startswith("phi"):
                    lines.append(f"  call void @warp_tally(i32 {len(self._blocks) - 1})")
                    waiting = False
                if not done.startswith(self.FREE):
                    kind = re.sub(r"call \S+ @(\S+?)\(.*", r"\1", done)
                    self._blocks[-1][kind.split(" ")[0]] += 1
            lines.append(line)
        return "\n".join(lines)

    def executed(self) -> Counter[str]:
        """Since the last time."""
        counts = (ctypes.c_uint64 * len(self._blocks)).in_dll(emulator(), "warp_tallies")
        total: Counter[str] = Counter()
        for k, block in enumerate(self._blocks):
            for kind, n in block.items():
                total[kind] += n * counts[k]
            counts[k] = 0
        return total


@contextlib.contextmanager
def launched(warps: int, seed: int = 1, tally: Tally | None = None, runner: Runner = Runner.WARP) -> Iterator[Any]:
    """Programs that are compiled meanwhile run as kernels, launched as on a GPU, on so many warps."""

    def compiled(_: str, closed: Any, open: Any, keep: bool) -> Any:
        return _Kernel(code.lane_text(closed, open, runner), warps, tally)

    library = emulator()
    with mock.patch.dict("os.environ", {"CAROM_CACHE": "off"}), mock.patch.object(program, "compile_code", compiled):
        jax.clear_caches()
        library.warp_begin(seed)
        yield library
        jax.clear_caches()
