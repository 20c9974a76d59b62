"""Variations of a sweep: the value of each lane, from distributions, grids and designs.

A lane's random numbers depend only on the seed, the path and the number of the lane: lane k draws the same in a sweep
of any length. They are Philox's (Salmon et al. 2011), mapped by the inverse of the distribution.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...collision.plain import plain
from ..formats.settings import MOST_LANES, check_lanes, parse_value
from ..wording import abridge, brief

CALL = re.compile(r"([A-Za-z_]+)\s*\((.*)\)", re.DOTALL)
EXAMPLES = "uniform(0.1, 0.9), normal(1, 0.1), loguniform(0.01, 1), choice(1, 2, 3), linspace(0, 1, 11), or a list 1, 2"


@dataclass(frozen=True)
class Draw:
    """A distribution.  values: a function from numbers (lanes,), uniform in (0, 1), to one value per lane."""

    values: Callable[[np.ndarray], Sequence[Any]]


@dataclass(frozen=True)
class Grid:
    """A grid.  points: those of one path; grids of several paths are multiplied."""

    points: Sequence[Any]


def lane_values(
    vary: Mapping[str, object], design: Mapping[str, Sequence[Any]], lanes: int | None, seed: int
) -> dict[str, list[Any]]:
    """Path -> one value per lane.

    vary: path -> a text such as "uniform(0.1, 0.9)", or a list of values, which is a grid.  design: path -> a column of
    values; row by row, repeated over the lanes, as the grid is.  lanes: None: as many as the grid or the design has.
    """
    both = vary.keys() & design.keys()
    if both:
        raise ValueError(f"{abridge(min(both))} is varied twice, by itself and in the design: leave one out")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed is {brief(seed)}; it must be a whole number from 0 to 2^64 - 1")
    how = {path: parse_variation(path, given) for path, given in vary.items()}
    grids = {path: x.points for path, x in how.items() if isinstance(x, Grid)}
    rows = _rows(design)
    if lanes is None:
        lanes = rows if design else math.prod(map(len, grids.values())) if grids else None
    if lanes is None:
        raise ValueError("how many lanes? give lanes, a grid, or a design")
    check_lanes(lanes)
    number = np.arange(lanes)
    shape = [len(points) for points in grids.values()]
    indices = np.unravel_index(number % math.prod(shape), shape) if grids else ()
    values = {path: [points[k] for k in at.tolist()] for (path, points), at in zip(grids.items(), indices, strict=True)}
    for path, draw in how.items():
        if isinstance(draw, Draw):
            values[path] = list(draw.values(uniforms(seed, path, lanes)))
    values |= {path: [plain(column[k]) for k in (number % rows).tolist()] for path, column in design.items()}
    return {path: values[path] for path in (*vary, *design)}  # settings are made in this order


def uniforms(seed: int, path: str, lanes: int) -> np.ndarray:
    """Uniform numbers (lanes,) in (0, 1), of 52 bits; they do not depend on the number of lanes."""
    key = int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little")
    raw = np.random.Philox(key=np.array([seed, key], np.uint64)).random_raw(lanes)
    return ((raw >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52


def parse_variation(path: str, given: object) -> Draw | Grid:
    """Parse the text after the path's equals sign, or a list of values."""
    if not isinstance(given, str):
        points = [plain(x) for x in given] if isinstance(given, Sequence | np.ndarray) else []
        if not points:
            raise ValueError(f"{abridge(path)}: {brief(given)} is no variation: write {EXAMPLES}")
        return Grid(points)
    call = CALL.fullmatch(given.strip())
    if call is None:
        if ":" in given and not given.strip().startswith(('"', "[", "{")):
            raise ValueError(f"{abridge(path)}: {brief(given)} is a range of `carom run`; a sweep takes {EXAMPLES}")
        return Grid(parse_value(path, f"[{given}]"))
    name, inner = call.groups()
    if name not in KINDS:
        raise ValueError(f"{abridge(path)}: there is no {abridge(name)!r}: write {EXAMPLES}")
    arguments = parse_value(path, f"[{inner}]") if inner.strip() else []
    return KINDS[name](path, given, arguments)


def _numbers(path: str, text: str, arguments: Sequence[Any], *names: str) -> list[float]:
    known = all(type(x) in (int, float) and math.isfinite(x) for x in arguments)
    if len(arguments) != len(names) or not known:
        raise ValueError(f"{abridge(path)}: {brief(text)} must have {len(names)} numbers: {', '.join(names)}")
    return [float(x) for x in arguments]


def _check_order(path: str, text: str, low: float, high: float, least: float = -math.inf) -> None:
    if not least < low < high:
        above = f" and above {least:g}" if math.isfinite(least) else ""
        raise ValueError(f"{abridge(path)}: {brief(text)}: low must be less than high{above}")


def _uniform(path: str, text: str, arguments: Sequence[Any]) -> Draw:
    low, high = _numbers(path, text, arguments, "low", "high")
    _check_order(path, text, low, high)
    return Draw(lambda u: (low * (1 - u) + high * u).tolist())


def _normal(path: str, text: str, arguments: Sequence[Any]) -> Draw:
    from scipy.special import ndtri

    mean, deviation = _numbers(path, text, arguments, "mean", "standard deviation")
    if deviation <= 0:
        raise ValueError(f"{abridge(path)}: {brief(text)}: the standard deviation must be above 0")
    return Draw(lambda u: (mean + deviation * ndtri(u)).tolist())


def _loguniform(path: str, text: str, arguments: Sequence[Any]) -> Draw:
    low, high = _numbers(path, text, arguments, "low", "high")
    _check_order(path, text, low, high, least=0.0)
    span = math.log(high / low)
    return Draw(lambda u: np.clip(low * np.exp(u * span), low, high).tolist())


def _choice(path: str, text: str, arguments: Sequence[Any]) -> Draw:
    if not arguments:
        raise ValueError(f"{abridge(path)}: {brief(text)} has nothing to choose from")
    return Draw(lambda u: [arguments[k] for k in (u * len(arguments)).astype(int)])


def _linspace(path: str, text: str, arguments: Sequence[Any]) -> Grid:
    low, high, points = _numbers(path, text, arguments, "first", "last", "number of values")
    if points != int(points) or not 1 <= points <= MOST_LANES:
        raise ValueError(f"{abridge(path)}: {brief(text)}: the number of values must be whole, from 1 to {MOST_LANES}")
    return Grid(np.linspace(low, high, int(points)).tolist())


KINDS: dict[str, Callable[[str, str, Sequence[Any]], Draw | Grid]] = {
    "uniform": _uniform, "normal": _normal, "loguniform": _loguniform, "choice": _choice, "linspace": _linspace,
}  # fmt: skip


def _rows(design: Mapping[str, Sequence[Any]]) -> int:
    lengths = {len(column) for column in design.values()}
    if len(lengths) > 1 or 0 in lengths:
        some = ", ".join(f"{abridge(path)} has {len(x)}" for path, x in itertools.islice(design.items(), 5))
        raise ValueError(f"the columns of a design must be equally long, and not empty: {some}")
    return lengths.pop() if lengths else 1
