"""Elementary functions made only of exactly rounded operations, so that they give the same bits everywhere.

They need IEEE 754's sum, product, quotient, square root, floor and comparisons, selection, and integers: no tables, no
loops, no fused products. They take arrays of any shape, float64 or float32, have no derivatives (they work on bits),
and may take denormal numbers for 0, or return 0 for them.

`FUNCTIONS` has them by the names of jax's primitives. Each docstring states the largest error, in ulp, of 1.2 million
results or more, for arguments of all sizes, near 1, near multiples of pi/2, near overflow.
"""

from __future__ import annotations

from .circular import acos, asin, atan, atan2, cos, sin, tan
from .powers import cbrt, cosh, exp, exp2, expm1, log, log1p, power, sinh, tanh

FUNCTIONS = {
    "sin": sin, "cos": cos, "tan": tan, "asin": asin, "acos": acos, "atan": atan, "atan2": atan2, "exp": exp,
    "exp2": exp2, "expm1": expm1, "log": log, "log1p": log1p, "sinh": sinh, "cosh": cosh, "tanh": tanh, "cbrt": cbrt,
    "pow": power,
}  # fmt: skip

__all__ = ["FUNCTIONS"]
