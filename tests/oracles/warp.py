"""Carom's programs as a warp of a GPU runs them, on this machine's CPU: 32 threads that take turns (`warp.c`).

The text is the GPU's, but for what only a GPU knows: shuffles, waiting, the number of a thread. Needs gcc and x86-64.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import jax

from carom.engine.native import code, compiler, machine
from carom.engine.native.warp.dialect import Dialect
from carom.engine.native.warp.spread import spread

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
attributes #0 = { nounwind noinline }""",
)
_LANE = """
declare void @warp_run(ptr, ptr)
define internal void @lane(ptr %A) {
  call void @warp_run(ptr @threads, ptr %A)
  ret void
}"""


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
    for name in ("warp_shuffle", "warp_sync", "warp_thread", "warp_number", "warp_run"):
        machine.llvm().add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    return library


@contextlib.contextmanager
def emulated(seed: int = 1) -> Iterator[Any]:
    """Programs that are compiled meanwhile run each lane on a warp. seed: of the order of its threads."""

    def text(closed: Any, opens: Any) -> Any:
        made, *rest = compiler.compiled_text(closed, opens, warp=True)
        return spread(made.replace("@lane(", "@threads("), EMULATED) + _LANE, *rest

    library = emulator()
    with mock.patch.dict("os.environ", {"CAROM_CACHE": "off"}), mock.patch.object(code, "compiled_text", text):
        jax.clear_caches()
        library.warp_begin(seed)
        yield library
        jax.clear_caches()
