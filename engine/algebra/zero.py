"""ZERO: a number, vector or matrix that is known to vanish when the program is traced.

A revolute joint has no linear part, a rigid body's inertia is mostly empty. XLA may not drop `0.0 * x`
(x could be NaN), so zeros are dropped here, by Python, before XLA sees them: ZERO absorbs products,
vanishes in sums, and is a pytree without leaves.
"""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

T = TypeVar("T")


class Zero:
    """The absorbing element. There is one: ZERO."""

    __array_ufunc__ = None  # NumPy scalars leave `s * ZERO` to ZERO

    def __add__(self, other: T) -> T:
        return other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self if other is self else -other

    def __rsub__(self, other: T) -> T:
        return other

    def __neg__(self) -> Zero:
        return self

    def __mul__(self, other: object) -> Zero:
        return self

    __rmul__ = __truediv__ = __matmul__ = __rmatmul__ = __mul__

    def cross(self, other: object) -> Zero:
        return self

    def dot(self, other: object) -> Zero:
        return self

    def __repr__(self) -> str:
        return "ZERO"


ZERO: Any = Zero()

jax.tree_util.register_pytree_node(Zero, lambda zero: ((), None), lambda aux, leaves: ZERO)


def is_zero(x: object) -> bool:
    """Return whether x is the symbolic zero."""
    return isinstance(x, Zero)


def dense(x: Any, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """The number x as an array of this shape; ZERO becomes zeros."""
    return jnp.broadcast_to(jnp.asarray(0 if is_zero(x) else x, dtype), shape)
