"""Vec3, Mat3, Sym3: three-dimensional vectors and matrices as frozen pytrees of scalar components.

Components are arrays of any common (broadcastable) shape, Python numbers, or ZERO. Operators read like
the book: `a + b`, `2 * a`, `a.cross(b)`, `a.dot(b)`, `R @ v`, `R.T @ v`, `S @ v`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform, overload

import jax
import numpy as np
from jax import Array

from .zero import ZERO, is_zero

T = TypeVar("T")
Scalar = Any  # an array of any shape, a Python number, or ZERO


@dataclass_transform(frozen_default=True)
def pytree(cls: type[T]) -> type[T]:
    """Frozen dataclass registered as a pytree of its fields."""
    cls.__array_ufunc__ = None  # type: ignore[attr-defined]  # NumPy scalars leave `s * v` to v
    return jax.tree_util.register_dataclass(dataclass(frozen=True)(cls))


@pytree
class Vec3:
    """A vector, three components."""

    x: Scalar
    y: Scalar
    z: Scalar

    @staticmethod
    def of(a: Array | np.ndarray) -> Vec3:
        """The vector of an array (..., 3)."""
        return Vec3(a[..., 0], a[..., 1], a[..., 2])

    @property
    def xyz(self) -> tuple[Scalar, Scalar, Scalar]:
        return self.x, self.y, self.z

    def __add__(self, o: Vec3) -> Vec3:
        return self if is_zero(o) else Vec3(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o: Vec3) -> Vec3:
        return self if is_zero(o) else Vec3(self.x - o.x, self.y - o.y, self.z - o.z)

    def __neg__(self) -> Vec3:
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, s: Scalar) -> Vec3:
        return s if is_zero(s) else Vec3(self.x * s, self.y * s, self.z * s)

    __rmul__ = __mul__

    def __truediv__(self, s: Scalar) -> Vec3:
        return Vec3(self.x / s, self.y / s, self.z / s)

    def dot(self, o: Vec3) -> Scalar:
        return o if is_zero(o) else self.x * o.x + self.y * o.y + self.z * o.z

    def cross(self, o: Vec3) -> Vec3:
        if is_zero(o):
            return o
        return Vec3(self.y * o.z - self.z * o.y, self.z * o.x - self.x * o.z, self.x * o.y - self.y * o.x)

    def premultiply(self, a: Mat3) -> Vec3:
        """a @ self."""
        x, y, z = a.rows
        return Vec3(x.dot(self), y.dot(self), z.dot(self))


_NONE = Vec3(ZERO, ZERO, ZERO)


@pytree
class Mat3:
    """A 3x3 matrix, row by row."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yx: Scalar
    yy: Scalar
    yz: Scalar
    zx: Scalar
    zy: Scalar
    zz: Scalar

    @property
    def rows(self) -> tuple[Vec3, Vec3, Vec3]:
        return (
            Vec3(self.xx, self.xy, self.xz),
            Vec3(self.yx, self.yy, self.yz),
            Vec3(self.zx, self.zy, self.zz),
        )

    @property
    def columns(self) -> tuple[Vec3, Vec3, Vec3]:
        return self.T.rows

    @property
    def T(self) -> Mat3:
        return Mat3(self.xx, self.yx, self.zx, self.xy, self.yy, self.zy, self.xz, self.yz, self.zz)

    @staticmethod
    def from_rows(a: Vec3, b: Vec3, c: Vec3) -> Mat3:
        a, b, c = (_NONE if is_zero(v) else v for v in (a, b, c))
        return Mat3(a.x, a.y, a.z, b.x, b.y, b.z, c.x, c.y, c.z)

    @staticmethod
    def from_columns(a: Vec3, b: Vec3, c: Vec3) -> Mat3:
        return Mat3.from_rows(a, b, c).T

    def __add__(self, o: Mat3) -> Mat3:
        return self if is_zero(o) else Mat3.from_rows(*(a + b for a, b in zip(self.rows, o.rows, strict=True)))

    def __sub__(self, o: Mat3) -> Mat3:
        return self if is_zero(o) else Mat3.from_rows(*(a - b for a, b in zip(self.rows, o.rows, strict=True)))

    def __mul__(self, s: Scalar) -> Mat3:
        return Mat3.from_rows(*(a * s for a in self.rows))

    __rmul__ = __mul__

    @overload
    def __matmul__(self, o: Vec3) -> Vec3: ...
    @overload
    def __matmul__(self, o: Mat3 | Sym3) -> Mat3: ...
    def __matmul__(self, o: Vec3 | Mat3 | Sym3) -> Any:
        """Matrix times Vec3, Mat3 or Sym3."""
        return o if is_zero(o) else o.premultiply(self)

    def premultiply(self, a: Mat3) -> Mat3:
        """a @ self."""
        t = self.T
        return Mat3.from_rows(*(t @ row for row in a.rows))


@pytree
class Sym3:
    """A symmetric 3x3 matrix, six numbers."""

    xx: Scalar
    yy: Scalar
    zz: Scalar
    xy: Scalar
    xz: Scalar
    yz: Scalar

    @property
    def full(self) -> Mat3:
        return Mat3(self.xx, self.xy, self.xz, self.xy, self.yy, self.yz, self.xz, self.yz, self.zz)

    @staticmethod
    def upper(m: Mat3) -> Sym3:
        """The upper triangle of a matrix that is known to be symmetric."""
        return Sym3(m.xx, m.yy, m.zz, m.xy, m.xz, m.yz)

    @staticmethod
    def of(a: Array | np.ndarray) -> Sym3:
        """The matrix of the upper triangle of an array (..., 3, 3)."""
        return Sym3(a[..., 0, 0], a[..., 1, 1], a[..., 2, 2], a[..., 0, 1], a[..., 0, 2], a[..., 1, 2])

    @staticmethod
    def outer(a: Vec3) -> Sym3:
        """a a^T."""
        return Sym3(a.x * a.x, a.y * a.y, a.z * a.z, a.x * a.y, a.x * a.z, a.y * a.z)

    @staticmethod
    def scalar(s: Scalar) -> Sym3:
        """s times the identity."""
        return Sym3(s, s, s, ZERO, ZERO, ZERO)

    def __add__(self, o: Sym3) -> Sym3:
        if is_zero(o):
            return self
        return Sym3(self.xx + o.xx, self.yy + o.yy, self.zz + o.zz, self.xy + o.xy, self.xz + o.xz, self.yz + o.yz)

    def __sub__(self, o: Sym3) -> Sym3:
        if is_zero(o):
            return self
        return Sym3(self.xx - o.xx, self.yy - o.yy, self.zz - o.zz, self.xy - o.xy, self.xz - o.xz, self.yz - o.yz)

    def __mul__(self, s: Scalar) -> Sym3:
        return Sym3(self.xx * s, self.yy * s, self.zz * s, self.xy * s, self.xz * s, self.yz * s)

    __rmul__ = __mul__

    @overload
    def __matmul__(self, o: Vec3) -> Vec3: ...
    @overload
    def __matmul__(self, o: Mat3 | Sym3) -> Mat3: ...
    def __matmul__(self, o: Vec3 | Mat3 | Sym3) -> Vec3 | Mat3:
        return self.full @ o

    def premultiply(self, a: Mat3) -> Mat3:
        """a @ self."""
        return Mat3.from_rows(*(self @ row for row in a.rows))

    def inverse(self) -> Sym3:
        """Inverse by cofactors. The determinant must not vanish, but may be below the least number of the dtype."""
        scale = 1 / _power_of_two(self.xx + self.yy + self.zz)  # rounds nothing
        x, y, z = (self * scale).full.rows
        cofactors = Mat3.from_rows(y.cross(z), z.cross(x), x.cross(y))
        return Sym3.upper(cofactors) * (1 / x.dot(y.cross(z))) * scale

    def rotate(self, R: Mat3) -> Sym3:
        """R self R^T."""
        a, b, c = (R @ self).rows
        x, y, z = R.rows
        return Sym3(a.dot(x), b.dot(y), c.dot(z), a.dot(y), a.dot(z), b.dot(z))


def _power_of_two(x: Array) -> Array:
    """The power of two in x > 0, by its exponent's bits. It has no derivative."""
    bits, exponent = (np.int32, 0x7F800000) if x.dtype == np.float32 else (np.int64, 0x7FF0000000000000)
    integer = jax.lax.bitcast_convert_type(x, bits)
    return jax.lax.bitcast_convert_type(integer & bits(exponent), x.dtype)


def skew(p: Vec3) -> Mat3:
    """[p], the matrix of `p.cross`."""
    return Mat3(ZERO, -p.z, p.y, p.z, ZERO, -p.x, -p.y, p.x, ZERO)
