"""A program called without XLA: one lane, numpy's arrays in and out. A call by XLA takes longer than many programs run.

The code is the same, and so are the bits: it gets a call frame in the form of XLA's (`handler.py`).
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Sequence

import numpy as np
from jax import ShapeDtypeStruct

from .code import MachineCode
from .handler import ARGS, DATA, HEAD, POISON, RESULTS

WORD = 8
FRAME, BUFFER = 16, 4  # words of a call frame, and of a buffer in it, that the code reads


class Straight:
    """A direct call of machine code.  results: shape and dtype of each."""

    def __init__(self, code: MachineCode, n_args: int, results: Sequence[ShapeDtypeStruct]) -> None:
        self._results = [(x.shape, np.dtype(x.dtype)) for x in results]
        sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in self._results]
        flags = POISON if os.environ.get("CAROM_NATIVE_POISON") else 0
        layout = [1, flags, code.grain, *[0] * n_args, *sizes, *[0] * n_args]
        assert len(layout) == HEAD + 2 * n_args + len(sizes)
        self._layout = np.array(layout, np.int64)
        self._n_args = n_args
        self._function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(code.address("called"))
        n = 1 + n_args + len(self._results)
        self._buffers = FRAME + n + BUFFER * np.arange(n)  # words at which they begin: the layout, arguments, results
        self._data = int(self._buffers[0]) + DATA // WORD  # word of the layout's pointer; the others are BUFFER apart
        self._free: list[tuple[np.ndarray, int]] = []  # frames that are free now, and their addresses

    def __call__(self, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Call it.  args: contiguous, of the program's shapes and dtypes."""
        try:
            frame, at = self._free.pop()
        except IndexError:
            frame, at = self._frame()
        made = [np.empty(shape, dtype) for shape, dtype in self._results]
        frame[self._data + BUFFER :: BUFFER] = [x.__array_interface__["data"][0] for x in (*args, *made)]
        wrong = self._function(at)
        self._free.append((frame, at))
        assert not wrong
        return made

    def _frame(self) -> tuple[np.ndarray, int]:
        n = len(self._buffers)
        words = np.zeros(FRAME + n + BUFFER * n, np.int64)
        base = words.ctypes.data
        words[ARGS // WORD], words[RESULTS // WORD] = base + WORD * FRAME, base + WORD * (FRAME + 1 + self._n_args)
        words[FRAME : FRAME + n] = base + WORD * self._buffers
        words[self._data] = self._layout.ctypes.data
        return words, base
