"""The machine code of a program, from the cache or compiled now."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend import core as jex

from . import cache
from .assembling import assemble_parts, unpack
from .compiler import compiled_text
from .handler import handler_text
from .key import text_key
from .machine import LoadedCode, target
from .runner import Runner
from .stages import stage

WORK = 20_000  # operations that are worth a separate task
_numbers = itertools.count()


@dataclasses.dataclass
class MachineCode:
    """code: object code by LLVM, packed.  grain: number of lanes a thread takes at a time.  opens: for each result, the
    open argument that it is, or None."""

    code: bytes
    grain: int
    opens: list[int | None]

    def __post_init__(self) -> None:
        self._loaded: LoadedCode | None = None
        self._registered = False
        self._name = f"carom_native_{next(_numbers)}"

    def register(self) -> str:
        """The name under which XLA finds it."""
        if not self._registered:
            jax.ffi.register_ffi_target(self._name, jax.ffi.pycapsule(self.address("called")), platform="cpu")
            self._registered = True
        return self._name

    def address(self, function: str) -> int:
        """Address of a function of the code."""
        if self._loaded is None:
            self._loaded = LoadedCode(*unpack(self.code))
        return self._loaded.address(function)

    def scratch(self, lanes: int) -> list[jax.ShapeDtypeStruct]:
        """Additional results that are never read: they are the arenas of threads."""
        return []

    def description(self) -> dict[str, Any]:
        return {"grain": self.grain, "opens": self.opens}


class LaneText(NamedTuple):
    """LLVM's text of a lane's program, `void lane(ptr %A)`.

    inputs, outputs: (offset in the arena, size), in bytes; the size of an open one is None, of one that is not read 0.
    arena: its size.  opens: for each result, the open argument that it is, or None.  grain: number of lanes worth a
    separate task.  elements: bytes of an element of each input, then of each output.  runner: what runs it.
    """

    text: str
    inputs: list[tuple[int, int | None]]
    outputs: list[tuple[int, int]]
    arena: int
    opens: list[int | None]
    grain: int
    elements: list[int]
    runner: Runner


def lane_text(jaxpr: jex.ClosedJaxpr, open: Sequence[int], runner: Runner = Runner.CPU) -> LaneText:
    """LLVM's text of a closed jaxpr."""
    text, made, needed = compiled_text(jaxpr, open, runner)
    sizes = lambda avals: [int(np.prod(a.shape, dtype=int)) * a.dtype.itemsize for a in avals]  # noqa: E731
    inputs = [
        (offset, None if is_open else size * is_needed)
        for offset, size, is_open, is_needed in zip(made.inputs, sizes(jaxpr.in_avals), open, needed, strict=True)
    ]
    outputs = [
        (offset or 0, 0 if offset is None else size)
        for offset, size in zip(made.outputs, sizes(jaxpr.out_avals), strict=True)
    ]
    grain = 1 if made.loops else max(1, WORK // max(made.weight, 1))
    elements = [a.dtype.itemsize for a in (*jaxpr.in_avals, *jaxpr.out_avals)]
    return LaneText(text, inputs, outputs, made.arena, made.opens, grain, elements, runner)


def compile_code(name: str, jaxpr: jex.ClosedJaxpr, open: Sequence[int], keep: bool) -> MachineCode:
    """Compile a closed jaxpr.  keep: store the code in the cache by its text, or find it there."""
    with stage(name, "translating"):
        made = lane_text(jaxpr, open)
    machine = target()
    text = made.text + "\n" + handler_text(made.inputs, made.outputs, made.arena, machine.triple)
    key = text_key(text)
    cached = cache.find(key) if keep else None
    if cached:
        return MachineCode(cached[1], cached[0]["grain"], cached[0]["opens"])
    with stage(name, "making machine code"):
        object_code = assemble_parts(text, machine)
    code = MachineCode(object_code, made.grain, made.opens)
    if keep:
        cache.store(key, code.description(), code.code)
    return code
