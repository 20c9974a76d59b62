"""The upward zero crossing of a polynomial (the Taylor series of a sliding step), differentiable."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ...engine.algebra.fence import fence
from ...engine.algebra.safe import safe_div
from ...engine.algebra.vec3 import Scalar
from .series import value, value_and_slope

ROOT_STEPS = 5  # Newton steps; a sliding step whose event is not found is repeated with half the length


def upward_root(polynomial: list[Scalar], h: Scalar) -> tuple[Scalar, Scalar]:
    """Return the upward root in [0, h] of a polynomial that is monotone there, and whether it was found.

    Newton's method starts from the parabola through both ends with the slope at 0. Only the last step, which does not
    change the value any more, is differentiated.
    """
    constant = jax.lax.stop_gradient(polynomial)
    s = _parabola(constant, h)
    before = s
    for _ in range(ROOT_STEPS):
        before, s = s, _newton(constant, s, h)
    found = jnp.abs(s - before) <= 1e-2 * jnp.sqrt(jnp.finfo(h.dtype).eps) * h
    return _differentiable_newton(polynomial, s, h), found


@fence
def _parabola(polynomial, h):
    """Return the root s = h t in [0, h] of y0 + slope t + (y1 - y0 - slope) t^2."""
    y0, slope = polynomial[0], polynomial[1] * h
    bend = value(polynomial, h) - y0 - slope
    root = jnp.sqrt(jnp.maximum(slope * slope - 4 * bend * y0, 0))
    down = slope + root
    return jnp.clip(safe_div(-2 * y0, down, otherwise=0.5), 0, 1) * h


@fence
def _newton(polynomial, s, h):
    y, slope = value_and_slope(polynomial, s)
    return jnp.clip(s - safe_div(y, slope, otherwise=0.5 * s), 0, h)


@fence
def _differentiable_newton(polynomial, s, h):
    y, slope = value_and_slope(polynomial, s)
    slope = jax.lax.stop_gradient(slope)
    return s - safe_div(y, slope)
