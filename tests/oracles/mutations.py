"""XML files of robots, damaged at random: by what people mistype, and by what no one would."""

from __future__ import annotations

import re
from random import Random

ATTRIBUTE = re.compile(r"""([\w:]+)\s*=\s*("[^"]*"|'[^']*')""")
ELEMENT = re.compile(r"<(\w+)[^<>]*/>|<(\w+)[^<>]*>.*?</\2>", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
NUMBERS = (
    "0", "-1", "1e-308", "-1e-9", "1e12", "1.1e12", "-1e13", "1e30", "1e155", "1e200", "1e308", "-1e308", "1e400",
    "nan", "inf", "-inf", "1e", "--1", "0x10", "1_0", "9" * 400, "1e-20", "3.4e38", "5", "2147483648", "-0.0", "",
)  # fmt: skip
TEXTS = (
    "", " ", "world", "a", "b", "/", "../..", "a/b", "a" * 5000, "\u00e9\u4e2d", "1 2", "1 2 3", "1 2 3 4", "1,2,3",
    "true", "&amp;", "%s", "fixed", "floating", "free", "ball", "mesh", "0 0 0", "none.stl",
)  # fmt: skip


def mutated(text: str, random: Random) -> str:
    """The text with one to three damages."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        text = random.choice(KINDS)(text, random)
    return text


def _one(pattern: re.Pattern[str], text: str, random: Random) -> tuple[int, int]:
    """Where one of the matches stands; nowhere if there is none."""
    found = [match.span() for match in pattern.finditer(text)]
    return random.choice(found) if found else (0, 0)


def _number(text: str, random: Random) -> str:
    start, end = _one(NUMBER, text, random)
    return text[:start] + random.choice(NUMBERS) + text[end:]


def _value(text: str, random: Random) -> str:
    start, end = _one(ATTRIBUTE, text, random)
    name = text[start:end].partition("=")[0]
    return f'{text[:start]}{name}="{random.choice(TEXTS + NUMBERS)}"{text[end:]}' if end else text


def _swapped(text: str, random: Random) -> str:
    """The value of one attribute in another."""
    (start, end), (first, last) = _one(ATTRIBUTE, text, random), _one(ATTRIBUTE, text, random)
    name, value = text[start:end].partition("=")[0], text[first:last].partition("=")[2]
    return f"{text[:start]}{name}={value}{text[end:]}" if value else text


def _without(text: str, random: Random) -> str:
    start, end = _one(random.choice((ATTRIBUTE, ELEMENT)), text, random)
    return text[:start] + text[end:]


def _doubled(text: str, random: Random) -> str:
    start, end = _one(ELEMENT, text, random)
    return text[:end] + text[start:end] * random.choice((1, 1, 5)) + text[end:]


def _moved(text: str, random: Random) -> str:
    """An element in the place of another."""
    (start, end), (first, last) = _one(ELEMENT, text, random), _one(ELEMENT, text, random)
    return text[:start] + text[first:last] + text[end:]


def _characters(text: str, random: Random) -> str:
    start = random.randrange(len(text) + 1)
    end = min(len(text), start + random.choice((0, 1, 1, 2, 20)))
    inside = "".join(random.choice("<>\"'/=& \0\n0e-.,x\u00ff") for _ in range(random.randrange(4)))
    return text[:start] + inside + text[end:]


def _cut(text: str, random: Random) -> str:
    return text[: random.randrange(len(text) + 1)]


KINDS = (_number, _number, _number, _value, _value, _swapped, _without, _without, _doubled, _moved, _characters, _cut)
