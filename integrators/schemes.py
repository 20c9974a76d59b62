"""The motion schemes by name."""

from __future__ import annotations

from .motion.exact import exact
from .motion.lie_midpoint import lie_midpoint
from .motion.rk4 import rk4
from .motion.semi_implicit import semi_implicit

SCHEMES = {"exact": exact, "rk4": rk4, "lie_midpoint": lie_midpoint, "semi_implicit": semi_implicit}


def scheme_named(name: str):
    """The scheme of this name, or an error that lists the names."""
    if name not in SCHEMES:
        raise ValueError(f"scheme {name!r} is unknown; it must be one of {', '.join(SCHEMES)}")
    return SCHEMES[name]
