"""Bodies that rest on each other, in world W, z up."""

from __future__ import annotations

import numpy as np

from ...collision.shapes import Box
from ..builder import SceneBuilder
from ..spec import SceneSpec
from .facts import Entry, Play, at_most


def stack(n: int = 10, *, side: float = 1.0, mass: float = 1.0, friction: float = 0.6) -> SceneSpec:
    """n equal cubes one on the other on the ground z = 0, touching, at rest: it stands.

    side [m] and mass [kg] are those of one cube; friction is that of all contacts.
    """
    b = SceneBuilder()
    b.add_plane(friction=friction)
    for k in range(n):
        position = (0.0, 0.0, side * (k + 0.5))
        b.add_body(f"box{k}", [Box((side / 2,) * 3)], mass=mass, position=position, friction=friction)
    return b.build()


def pyramid(n: int = 4, *, side: float = 0.5, apart: float = 1.1, friction: float = 0.6) -> SceneSpec:
    """n rows of equal cubes of 1 kg, n at the bottom and one on top, each on two of the row below, at rest: it stands.

    side [m]; apart: from one to the next in a row, in sides.
    """
    b = SceneBuilder(gap_band=1e-6)
    b.add_plane(friction=friction)
    name = "box{}.{}".format
    for row in range(n):
        for k in range(n - row):
            position = (side * apart * (k + row / 2), 0.0, side * (row + 0.5))
            b.add_body(name(row, k), [Box((side / 2,) * 3)], mass=1.0, position=position, friction=friction)
    where = [(row, k) for row in range(n) for k in range(n - row)]
    for i, (row, k) in enumerate(where):
        for above, j in where[i + 1 :]:
            if above != row + 1 or j not in (k - 1, k):  # only cubes that carry each other may touch
                b.exclude(name(row, k), name(above, j))
    return b.build()


def _largest_displacement(p) -> float:
    """Largest displacement of all bodies at any frame [m]."""
    return float(np.abs(p.positions - p.positions[0]).max())


_STACK = Play(facts=(at_most("how far a cube moves [m]", 1e-7, _largest_displacement),))
# contacts touch within ten gap bands
_PYRAMID = Play(facts=(at_most("how far a cube moves [m]", 1e-5, _largest_displacement),))

ENTRIES = {
    "stack": Entry(stack, "n cubes one on the other, at rest", (_STACK,)),
    "pyramid": Entry(pyramid, "rows of cubes, each on two, at rest", (_PYRAMID,)),
}
