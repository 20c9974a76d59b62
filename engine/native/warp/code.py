"""A program's kernel for NVIDIA's GPUs: from the cache, or compiled now."""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as jex

from .. import cache
from ..arena import THREADS
from ..code import LaneText, lane_text
from ..key import text_key
from ..machine import LoadedCode, assemble, llvm, target
from ..runner import Runner
from ..stages import stage
from .beside import beside
from .dialect import BLOCK, Dialect, nvidia
from .driver import CALLED, DriverError, driver, load
from .kernel import COUNTER, kernel_text
from .kernel_of_threads import kernel_of_threads
from .launch import launch_text
from .marks import insert_marks
from .ptx import ptx_of
from .spread import spread

ARENAS = 1 / 6  # of a device's memory, at most, for the arenas of the lanes that run at once
_numbers = itertools.count()


def kernel_of(made: LaneText, dialect: Dialect) -> str:
    """LLVM's text of the kernel of a lane's program."""
    if made.runner is Runner.THREAD:
        kernel = kernel_of_threads(made.inputs, made.outputs, made.elements, made.arena, dialect)
        return beside(made.text, dialect) + "\n" + kernel
    text, count = insert_marks(spread(made.text, dialect), dialect)
    return text + "\n" + kernel_text(made.inputs, made.outputs, made.arena, dialect, count > 0)


@dataclasses.dataclass
class GpuKernel:
    """code: PTX, as LLVM wrote it.  arguments, outputs: their numbers, with the layout and the scratch.
    arena: bytes per warp.  beside: number of lanes a warp runs at a time.  block: largest number of warps of a block.
    opens: for each result, the open argument that it is, or None."""

    code: bytes
    arguments: int
    outputs: int
    arena: int
    beside: int
    block: int
    opens: list[int | None]
    grain: int = 1  # every warp takes as many lanes as it runs at a time

    def __post_init__(self) -> None:
        self._handler: LoadedCode | None = None
        self._room = 1, 1, 0  # of any device: warps a multiprocessor, multiprocessors, memory
        self._name = f"carom_native_{next(_numbers)}_gpu"

    def register(self) -> str:
        """Load it on every device; return the name under which XLA finds it."""
        if self._handler is None:
            binding, library = llvm(), driver()
            if library is None:
                raise DriverError("NVIDIA's driver was not found")
            for name in CALLED:
                binding.add_symbol(name, _address(getattr(library, name)))
            self._handler = LoadedCode(assemble(launch_text(self.arguments, self.outputs), target()))
            on_devices = load(self.code, "lanes", self.block)
            for number, one in enumerate(on_devices):
                self._handler.call("set_function", number, one.function)
            if on_devices:
                self._room = tuple(min(room) for room in zip(*(one[1:] for one in on_devices), strict=True))
            capsule = jax.ffi.pycapsule(self._handler.address("launched"))
            jax.ffi.register_ffi_target(self._name, capsule, platform="CUDA")
        return self._name

    def scratch(self, lanes: int) -> list[jax.ShapeDtypeStruct]:
        """The counter of lanes and the arenas, one for each warp of each block: as many as run at once, if there are
        lanes for them and memory. No multiprocessor is idle for large blocks. It is called after `register`."""
        each, processors, memory = self._room
        warps = max(1, min(-(-lanes // self.beside), each * processors, int(ARENAS * memory) // self.arena))
        block = min(self.block, -(-warps // processors))
        return [jax.ShapeDtypeStruct((-(-warps // block), block, self.arena + COUNTER), np.uint8)]

    def description(self) -> dict[str, Any]:
        whole = dataclasses.asdict(self)
        return {name: whole[name] for name in ("arguments", "outputs", "arena", "beside", "block", "opens")}


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


def compile_kernel(runner: Runner, name: str, jaxpr: jex.ClosedJaxpr, open: Sequence[int], keep: bool) -> GpuKernel:
    """Compile the kernel of a closed jaxpr.  keep: store it in the cache by its text, or find it there."""
    with stage(name, "translating"):
        made = lane_text(jaxpr, open, runner)
        text = kernel_of(made, nvidia(made.runner))
    key = text_key(text)
    cached = cache.find(key) if keep else None
    if cached:
        return GpuKernel(cached[1], **cached[0])
    with stage(name, "making PTX"):
        ptx = ptx_of(text).encode()
    beside, block = (THREADS, 1) if made.runner is Runner.THREAD else (1, BLOCK)
    kernel = GpuKernel(ptx, 1 + len(made.inputs), len(made.outputs) + 1, made.arena * beside, beside, block, made.opens)
    if keep:
        cache.store(key, kernel.description(), ptx)
    return kernel
