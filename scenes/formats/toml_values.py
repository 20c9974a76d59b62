"""Values in TOML's notation, and TOML's names of the fields of descriptions."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, Field
from datetime import date, time
from typing import Any

NONE = "none"  # stands for None in a list with one item per dof; a key without a value is left out
WIDTH = 100  # characters of a line; longer ones are broken

_KEYS = {
    "links": "body", "statics": "static", "pairs": "pair", "exclusions": "exclude", "loops": "loop", "sites": "site",
    "sensors": "sensor",
}  # fmt: skip


def key_of(field: Field[Any]) -> str:
    """A field's key: its name, or a single word for each of the scene's lists."""
    return _KEYS.get(field.name, field.name)


def is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def spell(value: object) -> str:
    """A value in one line; numbers to the last bit."""
    match value:
        case None:
            return f'"{NONE}"'
        case bool():
            return str(value).lower()
        case int() if value >= 1 << 24:
            return f"{value:#X}".replace("X", "x")  # layers
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(map(spell, value))}]"
        case Mapping() if value:
            return f"{{ {', '.join(f'{key} = {spell(item)}' for key, item in value.items())} }}"
        case Mapping():
            return "{}"
        case date() | time():
            return str(value)
    raise TypeError(f"{value!r} has no place in a TOML file: give numbers, texts, lists of them, or Carom's own specs")


def wrap_value(value: object, room: int = WIDTH, indent: str = "") -> str:
    """Break a value over several lines if it is longer than the room in the first [characters]."""
    line = spell(value)
    if len(line) <= room or not isinstance(value, (list, tuple)):
        return line
    inner = indent + "  "
    room = WIDTH - len(inner)
    if any(isinstance(item, (list, tuple)) for item in value):
        rows = [f"{inner}{wrap_value(item, room, inner)}," for item in value]
    elif any(isinstance(item, (str, Mapping)) for item in value):  # they may have blanks in them
        rows = [f"{inner}{spell(item)}," for item in value]
    else:
        rows = textwrap.wrap(line[1:-1], WIDTH, initial_indent=inner, subsequent_indent=inner, break_long_words=False)
    return "\n".join(["[", *rows, f"{indent}]"])
