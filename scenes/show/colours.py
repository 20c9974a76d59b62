"""Colours of shapes: a fixed palette, one colour per link; static shapes have muted ones.

Colours are sRGB, (3,) from 0 to 1. Patterns show the rotation of round bodies.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Sequence

Colour = tuple[float, float, float]


def _hex(text: str) -> Colour:
    return tuple(int(text[k : k + 2], 16) / 255 for k in (0, 2, 4))  # type: ignore[return-value]


PALETTE = [
    _hex(c)
    for c in (
        "4a7fd4", "e08a3c", "2f9e83", "d2555a", "8a68c8", "d9b23a", "3ba4c9", "cf6fa0", "7f9b45", "6c7a89", "b5714c",
        "5b6abf",
    )
]  # fmt: skip
STATIC, GROUND, BONE = _hex("98a0a8"), _hex("c9ced4"), _hex("5d6875")
MATERIALS = {"cloth": _hex("1f7a58"), "felt": _hex("1f7a58"), "cushion": _hex("17563f"), "ice": _hex("cfe4ee")}
# American pool: solids 1 to 8, and 9 to 15 with a stripe of the colours 1 to 7
POOL = [_hex(c) for c in ["e8b520", "2250a8", "d0342c", "5b3a8c", "e5722a", "1f7d4f", "7d2430", "20242a"]]
IVORY = _hex("f4efe2")
PATTERNS = ("plain", "quarters", "solid", "stripe", "cue")  # numbered as the page's shader has them


def link_colours(names: Sequence[str], parents: Sequence[int]) -> list[Colour]:
    """One colour per link: a tree has one hue, and its links are lighter and darker in turn."""
    colours, root, depth, trees = [], [], [], 0
    for parent in parents:
        if parent < 0:
            root.append(trees)
            depth.append(0)
            trees += 1
        else:
            root.append(root[parent])
            depth.append(depth[parent] + 1)
    for tree, level in zip(root, depth, strict=True):
        colours.append(_shade(PALETTE[tree % len(PALETTE)], -0.08 if level % 2 else 0.06))
    if "cue" not in names:
        return colours
    return [_pool(name)[0] if _is_pool(name) else colour for name, colour in zip(names, colours, strict=True)]


def pattern(name: str, kind: str, names: Sequence[str]) -> str:
    """Pattern of a shape of this kind on the link of this name."""
    if kind == "sphere" and "cue" in names and _is_pool(name):
        return _pool(name)[1]
    return "quarters" if kind in ("sphere", "ellipsoid", "cylinder", "capsule") else "plain"


def _is_pool(name: str) -> bool:
    number = re.fullmatch(r"ball(\d+)", name)
    return name == "cue" or (number is not None and 1 <= int(number[1]) <= 15)


def _pool(name: str) -> tuple[Colour, str]:
    if name == "cue":
        return IVORY, "cue"
    number = int(name[4:])
    return POOL[(number - 1) % 8], "solid" if number <= 8 else "stripe"


def _shade(colour: Colour, lighter: float) -> Colour:
    h, light, s = colorsys.rgb_to_hls(*colour)
    return colorsys.hls_to_rgb(h, min(max(light + lighter, 0.0), 1.0), s)
