"""Building blocks of the functions: bits, whole numbers, powers of two, polynomials."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from .formats import DOUBLE, SINGLE, Coefficients, Format


def format_of(x: Array) -> Format:
    return DOUBLE if x.dtype == jnp.float64 else SINGLE


def bits_of(x: Array) -> Array:
    return lax.bitcast_convert_type(x, format_of(x).integer)


def float_of(bits: Array) -> Array:
    return lax.bitcast_convert_type(bits, jnp.float64 if bits.dtype == jnp.int64 else jnp.float32)


def select(which: Array, yes: Any, no: Any) -> Array:
    """Select yes where `which` is true, else no. One of them may be a number."""
    like = yes if isinstance(yes, Array) else no
    yes, no = (x if isinstance(x, Array) else number(x, like) for x in (yes, no))
    return lax.select(which, yes, no)


def number(x: float, like: Array) -> Array:
    return lax.full_like(like, x)


def chop(x: Array) -> Array:
    """Return x with the first half of its bits: the product of two chopped numbers is exact."""
    return float_of(bits_of(x) & -(1 << format_of(x).half_bits))


def with_sign(x: Array, bits: Array) -> Array:
    """Return x, with its sign changed where the first of these bits is set."""
    return float_of(bits_of(x) ^ (bits & format_of(x).sign))


def nearest(x: Array) -> tuple[Array, Array]:
    """Return the nearest integer n, |n| < 2^(bits - 1), and bits that end in those of n.

    A number added to 1.5 * 2^bits has no place for a fraction, and its last bits are the integer's.
    """
    n = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    return n, bits_of(n + 1.5 * 2.0 ** format_of(x).bits)


def power_of_two(n: Array) -> Array:
    """2^n. n: an integer of the float's size, or bits that end in its bits."""
    f = DOUBLE if n.dtype == jnp.int64 else SINGLE
    return float_of((n + f.bias) << f.bits)


def add_to_exponent(x: Array, n: Array) -> Array:
    """x * 2^n, both normal or n = 0, by adding to the exponent. n: as in `power_of_two`."""
    return float_of(bits_of(x) + (n << format_of(x).bits))


def polynomial(coefficients: Coefficients, x: Array) -> Array:
    """Evaluate by Estrin's scheme: pairs, pairs of pairs, ..., a short chain of operations (Muller, section 5.1)."""
    terms: list[Any] = list(coefficients)
    while True:
        pairs = [terms[k + 1] * x + terms[k] for k in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[2 * len(pairs) :]
        if len(terms) == 1:
            return terms[0]
        x = x * x


def exponent_and_fraction(x: Array) -> tuple[Array, Array]:
    """k, an integer, and m from 2^(-1/2) to 2^(1/2), of x = 2^k m. x: positive, normal, finite."""
    f = format_of(x)
    above = bits_of(x) - f.sqrt_half_bits
    return above >> f.bits, float_of((above & ((1 << f.bits) - 1)) + f.sqrt_half_bits)
