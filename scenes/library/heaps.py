"""Bodies that rest on each other, in world W, z up."""

from __future__ import annotations

from ...collision.shapes import Box
from ..builder import SceneBuilder
from ..spec import SceneSpec


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
