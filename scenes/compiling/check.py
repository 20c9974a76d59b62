"""Checks of single values: each returns the value in numpy float64, or raises a SceneError.

Every message reads: who, which field, the value, what it must be, and what to do:
`body "ball": mass is -1.0; it must be positive: give mass in kg, or density and let the shapes decide`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn

import numpy as np
from numpy.typing import DTypeLike

from ...collision.plain import plain
from ...collision.poses import Array
from ..wording import abridge, brief, list_names

MOST = 1e12  # largest length, mass, moment and speed, in SI units: squares of larger ones may overflow
LEAST = 1e-60  # smallest of those that must be positive: fourth powers of smaller ones may underflow
RANGED = ("m", "m/s", "m/s^2", "rad/s", "kg", "kg m^2", "kg/m^3")
UNIT_TOLERANCE = 1e-3  # a quaternion this close to length one was rounded; one further away is a mistake


class SceneError(ValueError):
    """A scene that cannot be compiled; the text names the body, the field, the value and the fix.

    where, field: the body (shape, joint) and the field as the text calls them.
    """

    def __init__(self, message: str, where: str = "", field: str = "") -> None:
        self.where, self.field = where, field
        super().__init__(message)


class SceneWarning(UserWarning):
    """A scene that compiles, but is probably not intended; the text says why, and what to do."""


def reject(where: str, field: str, value: object, must: str) -> NoReturn:
    """Raise; must: what the value must be, and after a colon what to do."""
    raise SceneError(f"{abridge(where)}: {field} is {brief(plain(value))}; {must}", where, field)


def reject_name(where: str, field: str, name: object, known: Iterable[str], must: str) -> NoReturn:
    """Raise for a name that is not known, with the nearest known one as the suggestion."""
    known = [k for k in known if isinstance(k, str)]
    near = get_close_matches(str(name), known, n=1)
    some = list_names(map(repr, known), 8)
    fix = f"did you mean {abridge(near[0])!r}?" if near else f"known are {some}" if known else "none is known"
    reject(where, field, name, f"{must}: {fix}")


def numbers(where: str, field: str, value: object, shape: tuple[int, ...], unit: str = "") -> Array:
    """Finite numbers of this shape; -1 in shape stands for any length. Those with a unit in RANGED are no larger than
    MOST."""
    array = any_numbers(where, field, value, shape, unit)
    if not np.isfinite(array).all():
        reject(where, field, value, f"it must be finite: give {_requirement(shape, unit)}")
    if unit in RANGED and (np.abs(array) > MOST).any():
        reject(where, field, value, f"no number in it may be larger than {MOST:g} {unit}: choose other units")
    return array


def in_kind(where: str, field: str, array: Array, kind: DTypeLike) -> Array:
    """Checked numbers in the requested dtype, in which finite ones must stay finite."""
    with np.errstate(over="ignore"):
        made = np.asarray(array, kind)
    if made.dtype.kind == "f" and (np.isinf(made) & np.isfinite(array)).any():
        largest = np.asarray(array)[np.isinf(made) & np.isfinite(array)].flat[0]
        reject(where, field, largest, f"it is too large for {made.dtype.name}: choose other units, or dtype='float64'")
    return made


def any_numbers(where: str, field: str, value: object, shape: tuple[int, ...], unit: str = "") -> Array:
    """Numbers as from `numbers`, but infinite ones are allowed; NaN is not."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        reject(where, field, value, f"it must be made of numbers: give {_requirement(shape, unit)}")
    fits = array.ndim == len(shape) and all(want in (-1, have) for want, have in zip(shape, array.shape, strict=True))
    if not fits:
        must = f"its shape must be {_shape_text(shape)}, not {array.shape}"
        reject(where, field, value, f"{must}: give {_requirement(shape, unit)}")
    if np.isnan(array).any():
        reject(where, field, value, f"it must not be NaN: give {_requirement(shape, unit)}")
    return array


def number(where: str, field: str, value: object, unit: str = "") -> float:
    return float(numbers(where, field, value, (), unit))


def positive(
    where: str, field: str, value: object, shape: tuple[int, ...] = (), unit: str = "", fix: str = ""
) -> Array:
    array = numbers(where, field, value, shape, unit)
    if not (array > 0).all():
        reject(where, field, value, f"it must be positive: {fix or 'give ' + _requirement(shape, unit)}")
    if unit in RANGED and (array < LEAST).any():
        reject(where, field, value, f"no number in it may be smaller than {LEAST:g} {unit}: choose other units")
    return array


def non_negative(where: str, field: str, value: object, shape: tuple[int, ...] = (), unit: str = "") -> Array:
    array = numbers(where, field, value, shape, unit)
    if not (array >= 0).all():
        reject(where, field, value, f"it must not be negative: give {_requirement(shape, unit)}, 0 for none")
    return array


def fraction(where: str, field: str, value: object, shape: tuple[int, ...] = ()) -> Array:
    array = numbers(where, field, value, shape)
    if not ((array >= 0) & (array <= 1)).all():
        reject(where, field, value, "it must lie between 0 and 1: give 0 for no bounce, 1 for no loss")
    return array


def signed_fraction(where: str, field: str, value: object) -> Array:
    array = numbers(where, field, value, ())
    if not -1 <= array <= 1:
        reject(where, field, value, "it must lie between -1 and 1: give 0 to end slip, 1 to give it back reversed")
    return array


def direction(where: str, field: str, value: object) -> Array:
    """A vector of any length except zero, normalised."""
    vector = numbers(where, field, value, (3,))
    length = np.linalg.norm(vector)
    if length < 1e-12:
        reject(where, field, value, "it must not be zero: give a direction such as (0, 0, 1)")
    return vector / length


def quaternion(where: str, field: str, value: object) -> Array:
    """A quaternion w x y z, normalised; one whose length is off by more than UNIT_TOLERANCE is a mistake."""
    q = numbers(where, field, value, (4,))
    length = np.linalg.norm(q)
    if abs(length - 1) > UNIT_TOLERANCE:
        fix = "give w x y z, such as (1, 0, 0, 0), divided by its length"
        reject(where, field, value, f"its length must be 1, not {length:.6g}: {fix}")
    return q / length


def bits(where: str, field: str, value: object) -> int:
    """A set of 32 layers."""
    if type(value) is not int or not 0 <= value < 2**32:
        fix = "give the sum of the layers' bits, such as 1 or 0b101, and 0xFFFFFFFF for all"
        reject(where, field, value, f"it must be a whole number from 0 to 2^32 - 1: {fix}")
    return value


def text(where: str, field: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        reject(where, field, value, "it must be a name: give a text that is not empty")
    return value


def _shape_text(shape: tuple[int, ...]) -> str:
    return str(tuple("n" if n < 0 else n for n in shape)).replace("'", "")


def _requirement(shape: tuple[int, ...], unit: str) -> str:
    inside = f" in {unit}" if unit else ""
    if shape in ((), (1,)):
        return f"one number{inside}"
    rows = " x ".join("n" if n < 0 else str(n) for n in shape)
    return f"{rows} numbers{inside}"
