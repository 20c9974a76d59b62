"""Plain values of a TOML file, checked for their type; `compile_scene` checks the numbers.

Each reader takes the key, the value and the path of their table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn, TypeGuard

from ...collision.plain import Numbers
from ..wording import abridge, list_names
from .toml_lines import Keys
from .toml_values import NONE, spell


class WrongValue(ValueError):
    """A wrong value; the text names the table, the key, its value and the fix.  keys: its path in the tables."""

    def __init__(self, keys: Keys, message: str) -> None:
        self.keys = keys
        super().__init__(message)


class TablePath(NamedTuple):
    """Place of a table in a file.  keys: its path.  who: its name in messages, as in those of `compile_scene`."""

    keys: Keys
    who: str

    def inner(self, *keys: str | int, who: str) -> TablePath:
        return TablePath((*self.keys, *keys), who)

    def reject(self, key: str, value: object, must: str, *inside: int) -> NoReturn:
        """Raise WrongValue.  inside: indices of the wrong item, if the value is a list."""
        shown = abridge(spell(value))
        raise WrongValue((*self.keys, key, *inside), f"{abridge(self.who)}: {abridge(key)} is {shown}; {must}")

    def missing(self, key: str, wanted: str) -> NoReturn:
        raise WrongValue(self.keys, f"{abridge(self.who)}: {key} is missing; add {key}, {wanted}")


def suggest(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, or all of them."""
    known = list(known)
    near = get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {abridge(spell(near[0]))}?"
    return f"known are {list_names(map(spell, known), 20)}" if known else "there is none"


def is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, (list, tuple))


def truth(key: str, value: object, where: TablePath) -> bool:
    if not isinstance(value, bool):
        where.reject(key, value, "it must be true or false, without quotes")
    return value


def number(key: str, value: object, where: TablePath) -> float:
    if not _is_number(value):
        where.reject(key, value, "it must be one number")
    return value


def numbers(key: str, value: Any, where: TablePath) -> Numbers:
    wrong = _not_number(value)
    if wrong is not None:
        where.reject(key, value, "it must be made of numbers", *wrong)
    return value


def whole(key: str, value: object, where: TablePath) -> int:
    if not _is_number(value) or isinstance(value, float):
        where.reject(key, value, "it must be a whole number, such as 1 or 0b101")
    return value


def text(key: str, value: object, where: TablePath) -> str:
    if not isinstance(value, str):
        where.reject(key, value, f'it must be a text, in quotes: such as {key} = "steel"')
    return value


def limits(key: str, value: object, where: TablePath) -> list[Any]:
    """Limits: a pair (lower, upper), or a pair or None for each dof."""
    must = f'it must be [lower, upper], or a list of those, one a dof, "{NONE}" for a dof without'
    if not is_list(value):
        where.reject(key, value, must)
    pairs = [None if pair == NONE else pair for pair in value]
    wrong = _not_number([0 if pair is None else pair for pair in pairs])
    if wrong is not None:
        where.reject(key, value, must, *wrong)
    return pairs


def mesh_source(key: str, value: object, where: TablePath) -> str | tuple[Numbers, ...]:
    """A path, or the pair (vertices, faces) from a table of the two."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping) or set(value) != {"vertices", "faces"}:
        where.reject(key, value, "it must be the path of a mesh file, or a table of vertices and faces")
    inner = where.inner(key, who=f"{where.who}, source")
    return tuple(numbers(name, value[name], inner) for name in ("vertices", "faces"))


def name_pairs(key: str, value: object, where: TablePath) -> tuple[tuple[str, str], ...]:
    must = 'it must be a list of pairs of names: such as [["upper", "lower"]]'
    if not is_list(value):
        where.reject(key, value, must)
    for k, pair in enumerate(value):
        if not is_list(pair) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            where.reject(key, pair, must, k)
    return tuple(map(tuple, value))


def _not_number(value: object) -> tuple[int, ...] | None:
    """Indices in nested lists of the first item that is not a number; None: there is none."""
    if not is_list(value):
        return None if _is_number(value) else ()
    for n, item in enumerate(value):
        if (wrong := _not_number(item)) is not None:
            return (n, *wrong)
    return None


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
