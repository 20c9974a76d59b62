"""Vec2, Sym2: vectors and symmetric matrices of the plane, as frozen pytrees of scalar components (see `vec3.py`)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from .vec3 import Scalar, pytree


@pytree
class Vec2:
    """A vector of the plane, two components."""

    x: Scalar
    y: Scalar

    @staticmethod
    def of(a: Array | np.ndarray) -> Vec2:
        """The vectors of an array (..., n, 2): components (n, ...), lanes last."""
        return Vec2(*(jnp.moveaxis(a[..., k], -1, 0) for k in (0, 1)))

    @property
    def array(self) -> Array:
        """Array (..., n, 2) of components (n, ...)."""
        return jnp.stack([jnp.moveaxis(self.x, 0, -1), jnp.moveaxis(self.y, 0, -1)], -1)

    def __add__(self, o: Vec2) -> Vec2:
        return Vec2(self.x + o.x, self.y + o.y)

    def __sub__(self, o: Vec2) -> Vec2:
        return Vec2(self.x - o.x, self.y - o.y)

    def __neg__(self) -> Vec2:
        return Vec2(-self.x, -self.y)

    def __mul__(self, s: Scalar) -> Vec2:
        return Vec2(self.x * s, self.y * s)

    __rmul__ = __mul__

    def __getitem__(self, rows: int | tuple[slice | None, ...]) -> Vec2:
        """The vectors of the given rows."""
        return Vec2(self.x[rows], self.y[rows])

    def dot(self, o: Vec2) -> Scalar:
        return self.x * o.x + self.y * o.y

    def cross(self, o: Vec2) -> Scalar:
        """Component of the cross product out of the plane; positive if o lies to the left of self."""
        return self.x * o.y - self.y * o.x

    @property
    def left(self) -> Vec2:
        """r*: the vector rotated by a quarter turn to the left."""
        return Vec2(-self.y, self.x)


@pytree
class Sym2:
    """A symmetric matrix of the plane, three numbers."""

    xx: Scalar
    yy: Scalar
    xy: Scalar

    @staticmethod
    def outer(a: Vec2) -> Sym2:
        """a a^T."""
        return Sym2(a.x * a.x, a.y * a.y, a.x * a.y)

    def __add__(self, o: Sym2) -> Sym2:
        return Sym2(self.xx + o.xx, self.yy + o.yy, self.xy + o.xy)

    def __sub__(self, o: Sym2) -> Sym2:
        return Sym2(self.xx - o.xx, self.yy - o.yy, self.xy - o.xy)

    def __mul__(self, s: Scalar) -> Sym2:
        return Sym2(self.xx * s, self.yy * s, self.xy * s)

    __rmul__ = __mul__

    def __matmul__(self, v: Vec2) -> Vec2:
        return Vec2(self.xx * v.x + self.xy * v.y, self.xy * v.x + self.yy * v.y)
