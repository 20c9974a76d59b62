"""Sine, cosine, tangent and their inverses."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array, lax

from .parts import bits_of, chop, format_of, nearest, number, polynomial, select, with_sign

TwoParts = tuple[Array, Array]


def sin(x: Array) -> Array:
    """The sine, to 0.79 ulp (float32: 0.77); see `_sine_and_cosine` for how large x may be."""
    k, sine, cosine = _sine_and_cosine(x)
    return with_sign(select(_odd(k), lax.add(*cosine), lax.add(*sine)), (k << _to_sign(x)) ^ bits_of(x))


def cos(x: Array) -> Array:
    """The cosine, to 0.78 ulp (0.78); see `_sine_and_cosine` for how large x may be."""
    k, sine, cosine = _sine_and_cosine(x)
    return with_sign(select(_odd(k), lax.add(*sine), lax.add(*cosine)), (k + 1) << _to_sign(x))


def tan(x: Array) -> Array:
    """The tangent, corrected by the rounding errors of sine and cosine, to 1.5 ulp (1.5).

    See `_sine_and_cosine` for how large x may be.
    """
    k, sine, cosine = _sine_and_cosine(x)
    odd = _odd(k)
    (over, more), (under, less) = _fast_two_sum(*sine), _fast_two_sum(*cosine)
    over, under = select(odd, under, over), select(odd, over, under)
    more, less = select(odd, less, more), select(odd, more, less)
    ratio = over / under
    return with_sign(ratio + (more - ratio * less) / under, (k << _to_sign(x) + 1) ^ bits_of(x))


def _fast_two_sum(high: Array, low: Array) -> TwoParts:
    """The sum and its rounding error."""
    sum = high + low
    return sum, (high - sum) + low


def _odd(k: Array) -> Array:
    return (k & 1) != 0


def _to_sign(x: Array) -> int:
    """Distance between the second bit of an integer and its sign bit."""
    return jnp.iinfo(format_of(x).integer).bits - 2


def _sine_and_cosine(x: Array) -> tuple[Array, TwoParts, TwoParts]:
    """sin r and cos r of |x| = k pi/2 + r, in parts, and bits that end in those of k.

    r = high + low, after Cody and Waite (1980), pi/2 in four parts: k times each of the first three is exact up to
    |k| = 2^30 (float32: 2^13), |x| = 1.6e9 (12 000). Beyond, r is off by about |x| 2^-53 (2^-24): results are those of
    a neighbour of x. Above 2^46 (2^20) x counts as 0; infinities give NaN.
    """
    f = format_of(x)
    x = lax.abs(x)
    x = select(x < 2.0 ** (46 if f.bits > 23 else 20), x, x - x)
    n, k = nearest(x * (2 / math.pi))
    a, b, c, d = f.quarter
    rest, third = (x - n * a) - n * b, n * c
    high = rest - third
    low = ((rest - high) - third) - n * d
    r = high + low
    low = (high - r) + low
    z = r * r
    half = 0.5 * z
    top = 1 - half
    sine = r, (z * r) * polynomial(f.sine, z) + low * top
    cosine = top, ((1 - top) - half) + ((z * z) * polynomial(f.cosine, z) - r * low)
    return k, sine, cosine


def atan(x: Array) -> Array:
    """The arctangent, to 0.94 ulp (0.89)."""
    a = lax.abs(x)
    steep = a > 1
    over, under = select(steep, number(1.0, x), a), select(steep, a, 1.0)
    middle, p, q = _quotient(over, under)
    t = p / q
    quarters = select(middle, number(0.5, x), select(steep, number(1.0, x), 0.0))
    return with_sign(_add_quarters(t, _arctangent_less(t), quarters, steep), bits_of(x))


def atan2(y: Array, x: Array) -> Array:
    """The angle of the point (x, y), from -pi to pi, with the signs of zeros.

    The rounding error of the quotient is computed by multiplying back, in exact products of halves (Dekker 1971), and
    its effect is added: to 0.88 ulp (0.93).
    """
    f = format_of(x)
    a, b = lax.abs(y), lax.abs(x)
    steep = a > b
    over, under = select(steep, b, a), select(steep, a, b)
    large = 2.0 ** (f.bias // 2)
    scale = select(under < large, number(large, x), 1 / large)
    over, under = over * scale, under * scale
    middle, p, q = _quotient(over, under)
    t = select(over == under, 0.0, p / q)  # also where both are 0, or infinite
    t_high, q_high = chop(t), chop(q)
    t_low, q_low = t - t_high, select(middle, over - (q_high - under), q - q_high)
    rest = ((p - t_high * q_high) - t_high * q_low) - t_low * q
    sure = (over > f.least * 2.0 ** (2 * f.bits)) & (q < math.inf)  # otherwise it underflows, or is NaN
    error = select(sure, rest / q, 0.0)
    back = bits_of(x) < 0
    outer = select(back, number(2.0, x), 0.0)
    inner = select(back, number(1.5, x), 0.5)
    quarters = select(middle, inner, select(steep, number(1.0, x), outer))
    return with_sign(
        _add_quarters(t, _arctangent_less(t) + (error - (t * t) * error), quarters, steep ^ back), bits_of(y)
    )


def _quotient(over: Array, under: Array) -> tuple[Array, Array, Array]:
    """Return whether over / under, from 0 to 1, is above 9/16, and p and q: its arctangent is that of p / q, plus pi/4
    if it is above. Otherwise p and q are over and under."""
    middle = (over >= under * 0.5625) & (over > 0)
    return middle, select(middle, over - under, over), select(middle, over + under, under)


def _arctangent_less(t: Array) -> Array:
    """atan t - t, |t| up to 9/16."""
    z = t * t
    return (t * z) * polynomial(format_of(t).arctangent, z)


def _add_quarters(high: Array, low: Array, quarters: Array, down: Array) -> Array:
    """quarters * pi/2 + (high + low), or minus (high + low) where `down`."""
    return _from_right_angles(select(down, -high, high), select(down, -low, low), quarters)


def _from_right_angles(high: Array, low: Array, quarters: Array) -> Array:
    """quarters * pi/2 + (high + low)."""
    first, second = format_of(high).right_angle
    base = quarters * first
    sum = base + high
    return sum + (((base - sum) + high) + (quarters * second + low))


def asin(x: Array) -> Array:
    """The arcsine. Beyond 1/2 it is pi/2 minus twice that of sqrt((1 - x) / 2). To 0.67 ulp (0.67)."""
    small, head, tail = _arcsine_parts(lax.abs(x))
    quarters = select(small, number(0.0, x), 1.0)
    return with_sign(_from_right_angles(head, tail, quarters), bits_of(x))


def acos(x: Array) -> Array:
    """The arccosine: pi/2 minus the arcsine; beyond 1/2 twice an arcsine, or pi minus that. To 0.64 ulp (0.66)."""
    small, head, tail = _arcsine_parts(lax.abs(x))
    below = x < 0
    flip = small & ~below
    quarters = select(small, number(1.0, x), select(below, number(2.0, x), 0.0))
    return lax.abs(_from_right_angles(select(flip, -head, head), select(flip, -tail, tail), quarters))


def _arcsine_parts(a: Array) -> tuple[Array, Array, Array]:
    """Return whether a <= 1/2, head and tail. Their sum is the arcsine of a if so, else minus twice that of
    sqrt((1 - a) / 2)."""
    f = format_of(a)
    small = a <= 0.5
    z = select(small, a * a, 0.5 * (1 - a))
    root = lax.sqrt(z)
    high = chop(root)
    low = (z - high * high) / ((root + high) + f.least)  # the root's rounding error
    more = z * polynomial(f.arcsine, z)
    return small, select(small, a, -2 * high), select(small, a * more, -2 * (low + root * more))
