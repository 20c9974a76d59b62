"""Settings: single numbers of a scene changed by paths, as on the command line: `--set body.ball.restitution=0.9`.

Paths go from the scene inwards, with dots: `gravity`, `gravity.2`, `body.ball.mass`, `body.arm.joint.damping`,
`body.ball.shapes.0.radius`, `static.floor.friction` (or `static.0.friction`, for those without a name), and
`pair.steel.felt.friction`. A * stands for any text in a name or for all shapes: `body.*.restitution`,
`body.box*.mass`. Values are written as in a TOML file, see docs/scenes.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NoReturn

import numpy as np

from ...collision.plain import plain
from ..chains.spec import refuse_chain
from ..spec import PairSpec, SceneSpec
from ..wording import abridge, brief, list_names
from .toml_limits import LimitError, load_toml
from .toml_plain import TablePath, suggest
from .toml_reading import read_field
from .toml_values import key_of

LONGEST = 1000  # most characters of a path
MOST_LANES = 1_000_000  # in a batch that is recorded
LARGEST = 1e300  # end of a range, so that differences can be computed


def apply_setting(scene: SceneSpec, path: str, value: object) -> SceneSpec:
    """The scene with one value changed, or all that a * names.

    value: the field's, or a file's (tables for joints and shapes); checked for its type. None: the default of a field
    that may be None. Raises ValueError for a path that leads nowhere.
    """
    if len(path) > LONGEST:
        raise ValueError(f"{abridge(path)} has {len(path)} characters, the path of a setting has {LONGEST} at most")
    refuse_chain(scene, path)
    return _change(scene, path.split("."), plain(value), path)


def parse_setting(text: str) -> tuple[str, Any]:
    """Path and value of e.g. "body.ball.restitution=0.9"; single words need no quotes: "body.ball.material=steel"."""
    path, value = split_setting(text, "body.ball.restitution=0.9")
    return path, parse_value(path, value)


def variation_values(text: str, lanes: int) -> tuple[str, list[Any]]:
    """Path and one value per lane, from "PATH=low:high", equally spaced, or from "PATH=a,b,c", repeated over lanes."""
    check_lanes(lanes)
    path, values = split_setting(text, "body.ball.friction=0.1:0.9")
    if ":" not in values:
        given = parse_value(path, f"[{values}]")
        if len(given) > lanes:
            raise ValueError(
                f"{abridge(path)}: {len(given)} values are too many for {lanes} lanes: leave some out, or add lanes"
            )
        return path, [given[lane % len(given)] for lane in range(lanes)]
    ends = [parse_value(path, end) for end in values.split(":", 2)]
    if len(ends) != 2 or not all(type(end) in (int, float) and abs(end) <= LARGEST for end in ends):
        raise ValueError(
            f"{abridge(path)}: {brief(values)} is not a range: write low:high, such as 0.1:0.9, or a list a,b,c"
        )
    return path, np.linspace(ends[0], ends[1], lanes).tolist()


def check_lanes(lanes: int) -> None:
    if not 1 <= lanes <= MOST_LANES:
        raise ValueError(f"there are {brief(lanes)} lanes: give at least 1, and at most {MOST_LANES}")


def split_setting(text: str, example: str) -> tuple[str, str]:
    path, equals, value = (part.strip() for part in text.partition("="))
    if not (path and equals and value):
        raise ValueError(f"{brief(text)} is not a setting: write PATH=VALUE, such as {example}")
    return path, value


def parse_value(path: str, text: str) -> Any:
    if re.fullmatch(r"[A-Za-z_][\w-]*", text) and text not in ("true", "false", "inf", "nan"):
        return text
    toml = text if "'" in text or '"' in text else re.sub(r"(?<![\w.])\.(?=\d)", "0.", text)  # TOML has no .5
    try:
        tables = load_toml(f"value = {toml}")
    except LimitError as error:
        raise ValueError(f"{abridge(path)}: {brief(text)} is no value: {error}") from None
    except ValueError:
        tables = {}
    if tables.keys() != {"value"} or tables["value"] == []:
        raise ValueError(
            f"{abridge(path)}: {brief(text)} is no value: write a number, a list such as [0, 0, 1], or a text in quotes"
        )
    return tables["value"]


def _change(thing: Any, parts: list[str], value: object, path: str) -> Any:
    """A dataclass, a tuple of dataclasses or a tuple of numbers, with the value at the path's parts changed."""
    if not parts:
        return value
    if is_dataclass(thing):
        return _field_changed(thing, parts[0], parts[1:], value, path)
    if isinstance(thing, tuple):
        return _items_changed(thing, parts, value, path)
    raise ValueError(
        f"{path}: there is nothing in it to be called {parts[0]!r}, for it is {brief(thing)}: set all of it"
    )


def _field_changed(thing: Any, key: str, rest: list[str], value: object, path: str) -> Any:
    known = {key_of(field): field for field in fields(thing)}
    if key not in known:
        _nowhere(path, key, known)
    field = known[key]
    new = _change(getattr(thing, field.name), rest, value, path)
    if not _is_made(new) and not (new is None and "None" in str(field.type)):
        new = read_field(field, new, TablePath((), path))
    return replace(thing, **{field.name: new})


def _items_changed(things: tuple[Any, ...], parts: list[str], value: object, path: str) -> tuple[Any, ...]:
    """Change every item that the first parts name or number: names may have dots, and then have several parts."""
    labels = [(label, k) for k, thing in enumerate(things) for label in _labels(thing, k)]
    remaining: dict[int, list[str]] = {}  # each item, and the parts that remain
    for n in range(1, len(parts) + 1):
        pattern = ".".join(parts[:n])
        remaining |= {k: parts[n:] for label, k in labels if _matches(pattern, label)}
    if not remaining:
        dots = min((label.count(".") for label, _ in labels), default=0)
        _nowhere(path, ".".join(parts[: dots + 1]), dict(labels))
    if _is_made(things) and not all(remaining.values()) and not is_dataclass(value):
        raise ValueError(f"{path}: {brief(value)} cannot stand for all of it: add to the path which field is meant")
    return tuple(
        _change(thing, remaining[k], value, path) if k in remaining else thing for k, thing in enumerate(things)
    )


def _matches(pattern: str, label: str) -> bool:
    """Return whether the pattern, in which each * stands for some text, matches; many * cost no time."""
    first, *others = pattern.split("*")
    if not others:
        return pattern == label
    *inner, last = others
    at = len(first)
    for piece in inner:
        start = label.find(piece, at)  # the first match is the best: it leaves most for the next pieces
        if start < 0:
            return False
        at = start + len(piece)
    return label.startswith(first) and label.endswith(last) and at + len(last) <= len(label)


def _labels(thing: object, k: int) -> tuple[str, ...]:
    """Names of an item in paths."""
    if isinstance(thing, PairSpec):
        return f"{thing.material_a}.{thing.material_b}", f"{thing.material_b}.{thing.material_a}"
    name = getattr(thing, "name", None)
    return (name,) if name else (str(k),)


def _is_made(value: object) -> bool:
    """Return whether it is a dataclass, or a tuple of some, not a file's table."""
    return is_dataclass(value) or (isinstance(value, tuple) and any(map(is_dataclass, value)))


def _nowhere(path: str, part: str, known: Mapping[str, object]) -> NoReturn:
    near = suggest(part, known)
    others = f" (there are {list_names(known, 20)})" if near.startswith("did") else ""
    raise ValueError(f"{path}: there is no {part!r}: {near}{others}")
