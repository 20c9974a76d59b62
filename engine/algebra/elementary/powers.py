"""Exponentials, logarithms, hyperbolic functions, powers and the cube root. Denormal numbers count as 0."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array, lax

from .parts import (
    add_to_exponent,
    bits_of,
    chop,
    exponent_and_fraction,
    format_of,
    nearest,
    number,
    polynomial,
    power_of_two,
    select,
    with_sign,
)


def exp(x: Array) -> Array:
    """e^x, to 0.83 ulp (float32: 0.85)."""
    f = format_of(x)
    _, k, high, tail = _reduce_argument(x)
    y = select(x <= f.exp_most, add_to_exponent(1 + (high + tail), k), x + math.inf)
    return select(x < f.exp_least, 0.0, y)


def exp2(x: Array) -> Array:
    """2^x, to 0.84 ulp (0.83)."""
    n, k = nearest(x)
    rest = x - n
    high = chop(rest)
    y = select(x < format_of(x).bias + 1, add_to_exponent(_near_one(high, rest - high), k), x + math.inf)
    return select(x < 1 - format_of(x).bias, 0.0, y)


def expm1(x: Array) -> Array:
    """e^x - 1, to 0.92 ulp (0.90)."""
    f = format_of(x)
    y = select(x <= f.exp_most, _grown(select(x < -60, -60.0, x))[0], x + math.inf)
    return select(lax.abs(x) < 2.0 ** -(f.bits + 2), x, y)


def _reduce_argument(x: Array) -> tuple[Array, Array, Array, Array]:
    """n, bits that end in those of n, and e^r - 1 = high + tail, of x = n ln 2 + r, |r| <= ln(2) / 2.

    After Cody and Waite (1980), ln 2 in two parts: n times the first is exact, and so is `high`, the larger part of r.
    """
    n, k = nearest(x * (1 / math.log(2)))
    first, second = format_of(x).ln2
    high = x - n * first
    return n, k, high, _growth(high, -(n * second))


def _growth(high: Array, low: Array) -> Array:
    """e^r - 1 - high, of r = high + low."""
    r = high + low
    z = r * r
    return low + (0.5 * z + (z * r) * polynomial(format_of(r).exponential, r))


def _near_one(high: Array, low: Array) -> Array:
    """2^(high + low), high chopped, of a sum from -1/2 to 1/2."""
    first, second = format_of(high).ln2_half
    head = high * first
    return 1 + (head + _growth(head, high * second + low * math.log(2)))


def _grown(x: Array) -> tuple[Array, Array, Array, Array]:
    """Return e^x - 1 = 2^n ((1 - 2^-n) + (e^r - 1)), corrected by the rounding errors of the sums of large parts;
    n; and e^r - 1 in two parts."""
    n, k, high, tail = _reduce_argument(x)
    less = select(n < 64, power_of_two(-k), 0.0)
    first = 1 - less
    sum = first + high
    error = ((first - sum) + high) + ((1 - first) - less)
    return add_to_exponent(sum + (error + tail), k), n, high, tail


def sinh(x: Array) -> Array:
    """The hyperbolic sine, to 1.4 ulp (1.5)."""
    return with_sign(_hyperbolic(lax.abs(x), -1), bits_of(x))


def cosh(x: Array) -> Array:
    """The hyperbolic cosine, to 1.1 ulp (1.1)."""
    return _hyperbolic(lax.abs(x), 1)


def _hyperbolic(a: Array, sign: int) -> Array:
    """Value of (e^a + sign * e^-a) / 2.

    With p = e^r - 1 and h = sign * 2^(-2n - 1) it is 2^n ((1/2 + h) + (1/2 - h) p + h p^2 / (1 + p)).
    """
    f = format_of(a)
    n, k, high, tail = _reduce_argument(a)
    p = high + tail
    h = select(n < 31, power_of_two(-(k + k) - 1), 0.0) * sign
    first, factor = 0.5 + h, 0.5 - h
    rest = ((0.5 - first) + h) + (factor * tail + h * (p * (p / (1 + p))))
    y = add_to_exponent(first + (factor * high + rest), k)
    return select(a <= f.sinh_most, y, a + math.inf)


def tanh(x: Array) -> Array:
    """The hyperbolic tangent, t = e / (e + 2), e = e^2x - 1; near 0, (e - e t) / 2 is more exact. To 2 ulp (2)."""
    a = lax.abs(x)
    e, n, high, tail = _grown(2 * select(a > 22, 22.0, a))
    t = e / (e + 2)
    return with_sign(select(n == 0, 0.5 * (high + (tail - e * t)), t), bits_of(x))


def log(x: Array) -> Array:
    """The natural logarithm, to 0.78 ulp (0.80)."""
    return _edges_of_log(x, x, _log(x, None))


def log1p(x: Array) -> Array:
    """The natural logarithm of u = 1 + x, plus u's rounding error over u. To 0.81 ulp (0.83)."""
    u = 1 + x
    v = u - x
    error = (x - (u - v)) + (1 - v)
    y = _edges_of_log(u, x, _log(u, error / u))
    return select(lax.abs(x) < 2.0 ** -(format_of(x).bits + 2), x, y)


def _edges_of_log(u: Array, x: Array, y: Array) -> Array:
    """Return y, the logarithm of u, or the special value where u is not positive and finite.  x: infinite, or NaN,
    where u is."""
    least = format_of(u).least
    y = select(u < math.inf, y, x)
    return select(u < least, select(u <= -least, number(math.nan, u), -math.inf), y)


def _log(x: Array, more: Array | None) -> Array:
    """ln x + more. For x = 2^k (1 + f) it is k ln 2 + 2 atanh s, s = f / (2 + f), and as 2 s = f - s f, 2 atanh s is
    f - (h - s (h + (2 atanh s - 2 s) / s)), h = f^2 / 2: only the rounding of the last difference matters."""
    form = format_of(x)
    integer, m = exponent_and_fraction(x)
    k = lax.convert_element_type(integer, x.dtype)
    first, second = form.ln2
    f = m - 1
    s = f / (f + 2)
    z = s * s
    h = 0.5 * f * f
    small = k * second if more is None else k * second + more
    return k * first + (f - (h - (s * (h + z * polynomial(form.logarithm, z)) + small)))


def cbrt(x: Array) -> Array:
    """The cube root: a polynomial, improved twice by Halley's method, the second time from a chopped number,
    whose square is exact. To 0.67 ulp (0.78)."""
    f = format_of(x)
    a = lax.abs(x)
    k, m = exponent_and_fraction(a)
    _, third = nearest(lax.convert_element_type(k, x.dtype) * (1 / 3))
    m = add_to_exponent(m, k - 3 * third)
    y = polynomial(f.cube_root, m)
    cube = y * y * y
    y = chop(y * ((cube + 2 * m) / (2 * cube + m)))
    ratio = m / (y * y)
    y = add_to_exponent(y + y * ((ratio - y) / (2 * y + ratio)), third)
    return select((a >= f.least) & (a < math.inf), with_sign(y, bits_of(x)), x * a)


def power(x: Array, y: Array) -> Array:
    """x^y, y of x's type or of integers; special cases as in IEEE 754's pow.

    It is 2^(y log2 |x|), the logarithm and the product in two parts (Muller, Elementary Functions, on x^y), to 1.2 ulp
    (0.87).
    """
    f = format_of(x)
    if jnp.issubdtype(y.dtype, jnp.integer):
        odd = (y & 1) != 0
        y = lax.convert_element_type(y, x.dtype)
        whole = y == y
    else:
        whole = lax.floor(y) == y
        half = 0.5 * y
        odd = whole & (lax.floor(half) != half)
    a = lax.abs(x)
    log_high, log_low = _log2(a)
    most = 2.0 ** (64 if f.bits > 23 else 32)  # 1's neighbours to this power are infinite, or 0
    bounded = select(y > most, most, select(y < -most, -most, y))
    y_high = chop(bounded)
    high, low = y_high * log_high, (bounded - y_high) * log_high + bounded * log_low
    n, k = nearest(high + low)
    rest = high - n
    sum = rest + low
    head = chop(sum)
    made = add_to_exponent(_near_one(head, low - (head - rest)), k)
    extreme = select(a < f.least, -math.inf, a) * y
    above = select((a >= f.least) & (a < math.inf), (high - (f.bias + 1)) + low, extreme)  # the infinite ones
    made = select(above < 0, made, math.inf)
    made = select(above < -2 * f.bias, 0.0, made)
    below = x <= -f.least
    made = select(odd & (bits_of(x) < 0), -made, made)
    nowhere = (x != x) | (y != y) | (below & ~whole & (a < math.inf))
    return select((y == 0) | (x == 1), 1.0, select(nowhere, math.nan, made))


def _log2(x: Array) -> tuple[Array, Array]:
    """log2 x to half as many bits again as a float has, in two parts, the first chopped.

    For x = 2^k m it is k + 2 / (3 ln 2) s t, s = (m - 1) / (m + 1), t = 3 atanh(s) / s = 3 + s^2 + ...
    """
    form = format_of(x)
    integer, m = exponent_and_fraction(x)
    k = lax.convert_element_type(integer, x.dtype)
    f, d = m - 1, m + 1
    d_high = chop(d)
    d_low = m - (d_high - 1)
    s = f / d
    s_high = chop(s)
    s_low = ((f - s_high * d_high) - s_high * d_low) / d
    z, square = s * s, s_high * s_high
    more = s_low * (s_high + s) + (z * z) * polynomial(form.power, z)
    t_high = chop((square + more) + 3)
    t_low = more - ((t_high - 3) - square)
    head, tail = s_high * t_high, s_low * t_high + t_low * s
    p_high = chop(head + tail)
    p_low = tail - (p_high - head)
    first, second = form.two_thirds_log2e
    head, tail = first * p_high, second * p_high + p_low * (first + second)
    high = chop((head + tail) + k)
    return high, tail - ((high - k) - head)
