"""Types of the elements of arrays in jax, LLVM and memory."""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

import numpy as np
from jax import Array, ShapeDtypeStruct
from jax.core import ShapedArray

Shaped = Array | ShapedArray | ShapeDtypeStruct  # anything with a shape and a dtype


class Type(NamedTuple):
    """name: numpy's.  llvm: of a register.  stored: of memory, where a bool takes a byte.  bytes: in memory.
    kind: "f" float, "i" signed, "u" unsigned, "b" bool."""

    name: str
    llvm: str
    stored: str
    bytes: int
    kind: str

    @property
    def bits(self) -> int:
        return 1 if self.kind == "b" else 8 * self.bytes

    @property
    def suffix(self) -> str:
        """The type's suffix in the names of LLVM's intrinsics."""
        return f"{'f' if self.kind == 'f' else 'i'}{self.bits}"

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.name)


F64 = Type("float64", "double", "double", 8, "f")
F32 = Type("float32", "float", "float", 4, "f")
I64 = Type("int64", "i64", "i64", 8, "i")
I32 = Type("int32", "i32", "i32", 4, "i")
BOOL = Type("bool", "i1", "i8", 1, "b")
_OTHERS = (
    Type("int16", "i16", "i16", 2, "i"),
    Type("int8", "i8", "i8", 1, "i"),
    Type("uint64", "i64", "i64", 8, "u"),
    Type("uint32", "i32", "i32", 4, "u"),
    Type("uint16", "i16", "i16", 2, "u"),
    Type("uint8", "i8", "i8", 1, "u"),
)
_BY_NAME = {t.name: t for t in (F64, F32, I64, I32, BOOL, *_OTHERS)}


class Unsupported(Exception):
    """A program that this compiler does not translate: the caller leaves it to XLA."""


@functools.cache
def type_of(dtype: np.dtype) -> Type:
    name = getattr(dtype, "name", str(dtype))
    if name not in _BY_NAME:
        raise Unsupported(f"arrays of {name}")
    return _BY_NAME[name]


def vector(t: Type, width: int, stored: bool = False) -> str:
    """LLVM's name of a vector of `width` elements; for one element, that of the scalar."""
    one = t.stored if stored else t.llvm
    return one if width == 1 else f"<{width} x {one}>"


def literal(t: Type, x: float) -> str:
    """Write a constant in LLVM's text."""
    if t.kind == "f":  # LLVM writes a float's bits as those of the double it is equal to
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(x)))[0]:016X}"
    if t.kind == "b":
        return "true" if x else "false"
    return str(int(x))
