"""Arguments of `carom export` besides the scene: spare bodies, shapes of queries, triggers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ...collision.shapes import Shape
    from ..live.world import Live

SIZES = {"sphere": 1, "box": 3, "capsule": 2, "cylinder": 2, "ellipsoid": 3}  # numbers that each kind needs
KINDS = "sphere:R, box:X,Y,Z, capsule:R,H, cylinder:R,H or ellipsoid:X,Y,Z, half lengths in metres"


def pool_of(texts: Sequence[str]) -> dict[str, int]:
    """Read spare bodies from texts BODY=N: name -> number."""
    pool: dict[str, int] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not (name and number.isdecimal()) or name in pool:
            raise typer.BadParameter(f"{text!r} is no BODY=N, once a body: give --pool ball=8", param_hint="--pool")
        pool[name] = int(number)
    return pool


def shape_of(text: str, option: str = "--probe") -> Shape:
    """Read a shape from a text KIND:SIZES."""
    from ...collision import shapes  # imports numpy, which the help does not need

    kind, _, sizes = text.partition(":")
    if kind in SIZES and (numbers := _numbers(sizes, SIZES[kind])):
        make = getattr(shapes, kind.capitalize())
        return make(numbers) if kind in ("box", "ellipsoid") else make(*numbers)
    raise typer.BadParameter(f"{text!r} is no shape: give {KINDS}", param_hint=option)


def add_triggers(live: Live, texts: Sequence[str]) -> None:
    """Add triggers from texts SHAPE@X,Y,Z or SHAPE@X,Y,Z@BODY."""
    for text in texts:
        shape, _, rest = text.partition("@")
        where, _, body = rest.partition("@")
        position = _numbers(where, 3)
        if not position:
            raise typer.BadParameter(
                f"{text!r} is no SHAPE@X,Y,Z, with @BODY behind it of one that a body carries: give --trigger "
                "sphere:0.5@0,0,1",
                param_hint="--trigger",
            )
        live.add_trigger(shape_of(shape, "--trigger"), position, body=body or None)


def _numbers(text: str, count: int) -> list[float]:
    """Read `count` numbers with commas between them; return [] if there are more or fewer."""
    try:
        numbers = [float(x) for x in text.split(",")]
    except ValueError:
        return []
    return numbers if len(numbers) == count else []
