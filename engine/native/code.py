"""The machine code of a program: from the cache, or compiled now."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import numpy as np

from . import cache
from .compiler import compiled_text
from .handler import handler_text
from .key import text_key
from .machine import Loaded, assemble, target
from .stages import stage

WORK = 20_000  # operations: what is worth a task of its own
_numbers = itertools.count()


@dataclasses.dataclass
class Code:
    """object_code: as LLVM wrote it.  grain: how many lanes a thread takes at a time.  opens: for each result, which
    open argument it is, or None."""

    object_code: bytes
    grain: int
    opens: list[int | None]

    def __post_init__(self) -> None:
        self._loaded: Loaded | None = None
        self._name = f"carom_native_{next(_numbers)}"

    def register(self) -> str:
        """The name under which XLA finds it."""
        if self._loaded is None:
            self._loaded = Loaded(self.object_code)
            capsule = jax.ffi.pycapsule(self._loaded.address("called"))
            jax.ffi.register_ffi_target(self._name, capsule, platform="cpu")
        return self._name

    def description(self) -> dict[str, Any]:
        return {"grain": self.grain, "opens": self.opens}


def compiled(name: str, closed: Any, open: Any, keep: bool) -> Code:
    """The code of a closed jaxpr. keep: in the cache by its text, from where it comes if it was compiled before."""
    with stage(name, "translating"):
        text, made, needed = compiled_text(closed, open)
    machine = target()
    sizes = lambda avals: [int(np.prod(a.shape, dtype=int)) * a.dtype.itemsize for a in avals]  # noqa: E731
    inputs = [
        (place, None if is_open else size * is_needed)
        for place, size, is_open, is_needed in zip(made.inputs, sizes(closed.in_avals), open, needed, strict=True)
    ]
    outputs = [
        (place or 0, 0 if place is None else size)
        for place, size in zip(made.outputs, sizes(closed.out_avals), strict=True)
    ]
    text += "\n" + handler_text(inputs, outputs, made.arena, machine.triple)
    key = text_key(text)
    found = cache.find(key) if keep else None
    if found:
        return Code(found[1], found[0]["grain"], found[0]["opens"])
    with stage(name, "making machine code"):
        object_code = assemble(text, machine)
    code = Code(object_code, 1 if made.loops else max(1, WORK // max(made.weight, 1)), made.opens)
    if keep:
        cache.store(key, code.description(), code.object_code)
    return code
