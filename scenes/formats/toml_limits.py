"""TOML of limited size, since the standard library's reader needs time and memory that grow with the square of a key's
parts (`a.b.c`), and Python's stack for nested lists.

Texts and comments are skipped by the rules of TOML 1.0; only the length of keys and the depth of brackets count.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from ..wording import abridge

MOST_TEXT = 100_000_000  # characters of a file
MOST_PARTS = 10  # parts of a key between its dots; scenes need three
MOST_DEEP = 10  # nested lists and tables; scenes need four

COMMENT = r"#[^\n]*+"
TEXT = r'"""(?:\\.|[^\\])*?"""(?:"{0,2})' + r"|'''.*?'''(?:'{0,2})" + r'|"(?:\\.|[^"\\])*+"' + r"|'[^'\n]*+'"
_PART = r"(?:[A-Za-z0-9_-]++|\"(?:\\.|[^\"\\\n])*+\"|'[^'\n]*+')"
_LONG_KEY = rf"(?P<key>{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS},}})"
_TOKEN = re.compile(rf"{_LONG_KEY}|(?P<bracket>[\[\]{{}}])|{COMMENT}|{TEXT}|[A-Za-z0-9_-]++", re.DOTALL)


class LimitError(ValueError):
    """A text that is too large, deep or long.  line: its line, from 1 on."""

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


def load_toml(text: str) -> dict[str, Any]:
    """The tables of a text. Raises LimitError, and tomllib.TOMLDecodeError for invalid TOML (both are ValueErrors)."""
    check_size(len(text))
    deep = 0
    for token in _TOKEN.finditer(text):
        if token["key"]:
            key, few = abridge(token["key"], 40), f"a key has at most {MOST_PARTS} parts between dots"
            raise LimitError(f"{key} has more: {few}, those of a scene have three", _line(text, token.start()))
        if bracket := token["bracket"]:
            deep = deep + 1 if bracket in "[{" else max(deep - 1, 0)
            if deep > MOST_DEEP:
                must = f"they are at most {MOST_DEEP} deep, those of a scene four"
                raise LimitError(
                    f"too many lists and tables are in each other here: {must}", _line(text, token.start())
                )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python's, about long whole numbers
        raise LimitError("a whole number in it has thousands of digits: give one that a float can be") from None


def check_size(size: int) -> None:
    """Check a size, in characters or bytes."""
    if size > MOST_TEXT:
        raise LimitError(f"it has {size} characters, at most {MOST_TEXT} are read: put meshes into files of their own")


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
