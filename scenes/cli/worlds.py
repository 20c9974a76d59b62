"""Arguments of `carom export` for a world besides its scene: spare bodies, shapes of queries, triggers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ...collision.shapes import Shape
    from ..live.world import Live

SIZES = {"sphere": 1, "box": 3, "capsule": 2, "cylinder": 2, "ellipsoid": 3}  # numbers that are said of each kind
KINDS = "sphere:R, box:X,Y,Z, capsule:R,H, cylinder:R,H or ellipsoid:X,Y,Z, half lengths in metres"


def pool_of(told: Sequence[str]) -> dict[str, int]:
    """Spare bodies of texts BODY=N."""
    pool: dict[str, int] = {}
    for one in told:
        name, _, number = one.rpartition("=")
        if not (name and number.isdecimal()) or name in pool:
            raise typer.BadParameter(f"{one!r} is no BODY=N, once a body: give --pool ball=8", param_hint="--pool")
        pool[name] = int(number)
    return pool


def shape_of(told: str, option: str = "--probe") -> Shape:
    """The shape of a text KIND:SIZES."""
    from ...collision import shapes  # numpy comes with it, which the help does without

    kind, _, sizes = told.partition(":")
    if kind in SIZES and (numbers := _numbers(sizes, SIZES[kind])):
        make = getattr(shapes, kind.capitalize())
        return make(numbers) if kind in ("box", "ellipsoid") else make(*numbers)
    raise typer.BadParameter(f"{told!r} is no shape: give {KINDS}", param_hint=option)


def add_triggers(live: Live, told: Sequence[str]) -> None:
    """Triggers of texts SHAPE@X,Y,Z or SHAPE@X,Y,Z@BODY."""
    for one in told:
        shape, _, rest = one.partition("@")
        place, _, body = rest.partition("@")
        position = _numbers(place, 3)
        if not position:
            raise typer.BadParameter(
                f"{one!r} is no SHAPE@X,Y,Z, with @BODY behind it of one that a body carries: give --trigger "
                "sphere:0.5@0,0,1",
                param_hint="--trigger",
            )
        live.add_trigger(shape_of(shape, "--trigger"), position, body=body or None)


def _numbers(told: str, count: int) -> list[float]:
    """So many numbers with commas between them; else none."""
    try:
        numbers = [float(x) for x in told.split(",")]
    except ValueError:
        return []
    return numbers if len(numbers) == count else []
