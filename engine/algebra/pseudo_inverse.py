"""The Moore-Penrose inverse with a given rank: singular values below a given size count as zero.

`jnp.linalg.pinv` cuts relative to the matrix's own largest singular value, and so inverts the rounding of a matrix
that ought to vanish. Here the caller gives the threshold, from the size of the terms of the matrix.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from .safe import safe_div


@jax.custom_jvp
def pseudo_inverse(a: Array, smallest: Array) -> Array:
    """Pseudo-inverse (..., n, m) of a (..., m, n); singular values of at most `smallest` (...) count as zero.

    Its derivative is that of constant rank (Golub and Pereyra 1973), and needs no distinct singular values.
    """
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    kept = s > smallest[..., None]
    inverse = safe_div(1, s, kept, 0 * s)  # 0 s: NaN stays NaN
    return times(vt.mT * inverse[..., None, :], u.mT)


@pseudo_inverse.defjvp
def _derivative(primals, tangents):
    (a, smallest), (da, _) = primals, tangents
    x = pseudo_inverse(a, smallest)
    dx = -times(x, da, x) + times(x, x.mT, da.mT, beside(a, x)) + times(beside(x, a), da.mT, x.mT, x)
    return x, dx


def beside(a: Array, b: Array) -> Array:
    """1 - a b (..., n, n): the projector on the complement of a b."""
    return jnp.eye(a.shape[-2], dtype=a.dtype) - times(a, b)


def rank(a: Array, x: Array) -> Array:
    """Rank (...) of a matrix a according to its pseudo-inverse x: the trace of the projector a x."""
    return jnp.round(jnp.einsum("...ij,...ji->...", a, x, precision="highest")).astype(jnp.int32)


def times(*factors: Array) -> Array:
    """The product of matrices (..., m, n), in full precision on every device."""
    product = factors[0]
    for factor in factors[1:]:
        product = jnp.matmul(product, factor, precision="highest")
    return product


def apply(a: Array, x: Array) -> Array:
    """a x (..., m) of a matrix (..., m, n) and a vector (..., n)."""
    return times(a, x[..., None])[..., 0]


def size(a: Array) -> Array:
    """Frobenius norm (...) of a matrix, not differentiated: the scale of thresholds."""
    return jax.lax.stop_gradient(jnp.sqrt((a * a).sum((-2, -1))))
