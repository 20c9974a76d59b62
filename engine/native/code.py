"""The machine code of a program, and what XLA needs to call it."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import jax
import numpy as np

from .compiler import compiled_text
from .handler import handler_text
from .machine import Loaded, assemble, target

WORK = 20_000  # operations: what is worth a task of its own
_numbers = itertools.count()


class Code:
    """grain: how many lanes a thread takes at a time.  opens: for each result, which open argument it is, or None."""

    def __init__(self, object_code: bytes, grain: int, opens: list[int | None]) -> None:
        self.grain, self.opens = grain, opens
        self._loaded = Loaded(object_code)
        self._name: str | None = None

    def register(self) -> str:
        """The name under which XLA finds it."""
        if self._name is None:
            self._name = f"carom_native_{next(_numbers)}"
            capsule = jax.ffi.pycapsule(self._loaded.address("called"))
            jax.ffi.register_ffi_target(self._name, capsule, platform="cpu")
        return self._name


def code_of(program: Any) -> Code:
    """Compiles it."""
    closed = program.closed
    text, made = compiled_text(closed, program.open)
    machine = target()
    sizes = lambda avals: [int(np.prod(a.shape, dtype=int)) * a.dtype.itemsize for a in avals]  # noqa: E731
    inputs = [
        (place, None if is_open else size)
        for place, size, is_open in zip(made.inputs, sizes(closed.in_avals), program.open, strict=True)
    ]
    outputs = [
        (place or 0, 0 if place is None else size)
        for place, size in zip(made.outputs, sizes(closed.out_avals), strict=True)
    ]
    text += "\n" + handler_text(inputs, outputs, made.arena, machine.triple)
    grain = 1 if made.loops else max(1, WORK // max(made.weight, 1))
    return Code(assemble(text, machine), grain, made.opens)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
