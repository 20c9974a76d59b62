"""Checks of arguments of a world's methods: each returns the value, or raises an error that says what it is, and what
it must be. They come first in every call, so a refused call changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, TypeVar

import numpy as np

from ...collision.poses import Array
from ...collision.shapes import Shape
from ...integrators.options import OptionKeywords, Options
from ..compiling.check import MOST, UNIT_TOLERANCE
from ..wording import brief

T = TypeVar("T")
SHORTEST = 1e-12  # [s] far below the resolution of a clock in double precision after a minute
LONGEST = 1e3  # [s] of a frame, which takes seconds to compute; a longer one may have been meant in milliseconds
LARGEST = 2**31 - 1  # largest whole number, which programs hold in 32 bits
LISTED = 8  # names in a message
MAX_TICKS, MAX_EVENTS, WINDOW = 64, 1024, 1e-3  # defaults of a frame


def numbers(name: str, value: object, length: int) -> Array:
    """Numbers (length,) of no more than MOST, a copy; a single one may be a plain number."""
    array = _reals(value)
    if array is not None and array.shape == () and length == 1:
        array = array.reshape(1)
    if array is None or array.shape != (length,) or not (np.abs(array) <= MOST).all():
        raise _wrong(name, value, f"{length} finite number{'s' * (length != 1)} of at most {MOST:g}")
    return array


def vectors(name: str, value: object) -> Array:
    """Finite vectors (R, 3), from one vector, from many, or from none."""
    array = _reals(value)
    fits = array is not None and (array.shape[-1:] == (3,) or array.shape == (0,))
    if array is None or not fits or not (np.abs(array) <= MOST).all():
        raise _wrong(name, value, f"vectors (R, 3) of finite numbers of at most {MOST:g}")
    return array.reshape(-1, 3)


def direction(name: str, value: object) -> Array:
    """A vector (3,) that is not 0."""
    array = numbers(name, value, 3)
    if not array.any():
        raise _wrong(name, value, "a vector that is not 0")
    return array


def quaternion(name: str, value: object) -> Array:
    """Unit quaternion (4,), from one of about length 1."""
    array = numbers(name, value, 4)
    length = np.linalg.norm(array)
    if abs(length - 1) > UNIT_TOLERANCE:
        raise ValueError(f"{name} is {brief(value)}, of length {length:.6g}; it must have length 1: w x y z")
    return array / length


def seconds(name: str, value: object) -> float:
    """A length of time."""
    array = _reals(value)
    if array is None or array.shape != () or not SHORTEST <= array <= LONGEST:
        raise _wrong(name, value, f"a positive number of seconds, from {SHORTEST:g} to {LONGEST:g}")
    return float(array)


def fraction(name: str, value: object) -> float:
    """A number from 0 to 1."""
    array = _reals(value)
    if array is None or array.shape != () or not 0 <= array <= 1:
        raise _wrong(name, value, "a number from 0 to 1")
    return float(array)


def metres(name: str, value: object) -> float:
    """A distance, infinite if it is more than MOST."""
    array = _reals(value)
    if array is None or array.shape != () or not array >= 0:
        raise _wrong(name, value, "one number of metres, 0 or more, which may be infinite")
    return float(array) if array <= MOST else np.inf


def speed(name: str, value: object) -> float:
    """0 or more [m/s]."""
    array = _reals(value)
    if array is None or array.shape != () or not 0 <= array < np.inf:
        raise _wrong(name, value, "a speed [m/s], 0 or more")
    return float(array)


def count(name: str, value: Any, least: int) -> int:
    """A whole number."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= LARGEST:
        raise _wrong(name, value, f"a whole number of at least {least}, and at most {LARGEST}")
    return int(value)


def room(name: str, value: object) -> int | None:
    """A capacity; None: the default."""
    return None if value is None else count(name, value, 1)


def function(name: str, value: T, of: str) -> T:
    """A function.  of: its arguments, for the message."""
    if not callable(value):
        raise TypeError(f"{name} is {brief(value)}; it must be a function of {of}")
    return value


def one_of(name: str, value: object, known: Iterable[str]) -> str:
    """One of the known names."""
    known = list(known)
    if isinstance(value, str) and value in known:
        return value
    list_names = ", ".join(map(repr, known[:LISTED])) + ", ..." * (len(known) > LISTED)
    near = get_close_matches(value, known, n=1) if isinstance(value, str) else []
    fix = f": did you mean {near[0]!r}?" if near and len(known) > LISTED else ""
    raise _wrong(name, value, (f"one of {list_names}" if known else "one of none: there are none") + fix)


def names(name: str, value: object, known: Iterable[str]) -> set[str]:
    """Some of the known names, in a list or another sequence."""
    known = list(known)
    return {one_of(f"a name in {name}", item, known) for item in _items(name, value, "names, such as ['ball']")}


def shape(name: str, value: object) -> Shape:
    """A shape with a valid pose; its sizes are checked when it is compiled."""
    if not isinstance(value, Shape):
        raise _wrong(name, value, "a shape, such as carom.Sphere(0.1)")
    numbers(f"{name}.position", value.position, 3)
    quaternion(f"{name}.quaternion", value.quaternion)
    return value


def shapes(name: str, value: object) -> list[Shape]:
    """Shapes in a list or another sequence."""
    return [shape(f"a shape in {name}", x) for x in _items(name, value, "shapes, such as [carom.Sphere(0.1)]")]


def options_of_frames(dt: float, options: Options | None, keywords: OptionKeywords) -> Options:
    """The options of frames of dt [s]."""
    if options is None:
        window = None if keywords.get("time_control") == "fixed" else WINDOW
        keywords = {"max_dt": dt, "window": window, **keywords}
    options = Options.of(options, keywords)
    if options.resting != "solve":
        raise ValueError(f"Live: resting is {options.resting!r}; worlds know 'solve' alone")
    ticks, events = options.max_ticks, options.max_events
    return options.replace(
        max_ticks=MAX_TICKS if ticks is None else ticks, max_events=MAX_EVENTS if events is None else events
    )


def _reals(value: object) -> Array | None:
    """A copy in float64 of real numbers of any shape; None for anything else: bools, texts, complex numbers, objects,
    or whole numbers too large for an array."""
    try:
        array = np.asarray(value)
        return np.array(array, np.float64) if array.dtype.kind in "iuf" else None
    except Exception:  # array-like objects may raise anything
        return None


def _items(name: str, value: Any, of: str) -> list[Any]:
    try:
        if not isinstance(value, (str, bytes)):
            return list(value)
    except TypeError:
        pass
    raise _wrong(name, value, f"a list of {of}")


def _wrong(name: str, value: object, must: str) -> ValueError:
    return ValueError(f"{name} is {brief(value)}; it must be {must}")
