"""The library by name: what `carom.load("name")` and `carom list` look up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ..spec import SceneSpec
from . import bodies, chains, heaps, wawrzynski


@dataclass(frozen=True)
class Entry:
    """build: makes the scene; its keywords are the scene's parameters.  description: one line."""

    build: Callable[..., SceneSpec]
    description: str


SCENES: dict[str, Entry] = {
    "pendulum": Entry(chains.pendulum, "one uniform rod on a hinge"),
    "double_pendulum": Entry(chains.double_pendulum, "two uniform rods on hinges"),
    "chain": Entry(chains.chain, "n uniform rods end to end, hung or free"),
    "arm7": Entry(chains.arm7, "a seven-joint arm with tilted frames and skew inertias"),
    "humanoid": Entry(chains.humanoid, "a free figure of 15 links and 30 degrees of freedom"),
    "free_bodies": Entry(bodies.free_bodies, "n free boxes, thrown and spun"),
    "tumbling_body": Entry(bodies.tumbling_body, "Drake's axisymmetric free body (Kane 1983)"),
    "heavy_top": Entry(bodies.heavy_top, "a symmetric top in steady precession"),
    "babyboot": Entry(bodies.babyboot, "Kane's chaotic babyboot"),
    "stack": Entry(heaps.stack, "n cubes one on the other, at rest"),
    "wawrzynski_pendulum": Entry(wawrzynski.wawrzynski_pendulum, "Wawrzynski 13.1: unit pendulum from the top"),
    "acrobot": Entry(wawrzynski.acrobot, "Wawrzynski 13.2: two links on a bar"),
    "weightlifter": Entry(wawrzynski.weightlifter, "Wawrzynski 13.3: three links that lift a weight"),
    "cart_pole": Entry(wawrzynski.cart_pole, "Wawrzynski 14.1: a pole on a cart"),
    "cart_double_pendulum": Entry(wawrzynski.cart_double_pendulum, "Wawrzynski 14.2: two links on a cart"),
    "cart_triple_pendulum": Entry(wawrzynski.cart_triple_pendulum, "Wawrzynski 14.3: three links on a cart"),
}


def library_scene(name: str, **parameters: Any) -> SceneSpec:
    """A scene of the library, e.g. library_scene("chain", n=4, free=True)."""
    if name not in SCENES:
        near = get_close_matches(name, SCENES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the library has {', '.join(SCENES)}"
        raise ValueError(f"no scene named {name!r}: {hint}")
    return SCENES[name].build(**parameters)
