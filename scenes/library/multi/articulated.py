"""Multi 3 and 13: energy of articulated bodies, and a long one. World W, z up."""

from __future__ import annotations

from ...spec import SceneSpec
from ..chains import chain
from ..facts import Entry, Play, at_most


def multi_03() -> SceneSpec:
    """A double pendulum of two rods, 1 m and 1 kg each, let go with both joints at 1.5 rad: chaotic."""
    return chain(2, length=1.0, mass=1.0, angle=1.5)


def multi_13(n: int = 12) -> SceneSpec:
    """A chain of n rods, 0.1 m and 0.5 kg each, on hinges about x and y in turn: how its run time grows with n."""
    return chain(n, length=0.1, angle=0.1, alternate=True)


_DOUBLE = Play(
    (at_most("drift of energy in 60 s, in parts of the kinetic [J/J]", 1e-7, lambda p: p.energy_drift),),
    duration=60.0,
    frame_dt=0.1,
    max_dt=1e-3,
)
_LONG = Play(
    (at_most("drift of energy in 2 s, in parts of the kinetic [J/J]", 1e-7, lambda p: p.energy_drift),),
    max_dt=1e-3,
)  # fmt: skip

ENTRIES = {
    "multi_03": Entry(multi_03, "Multi 3: energy of a double pendulum", (_DOUBLE,)),
    "multi_13": Entry(multi_13, "Multi 13: a long chain", (_LONG,)),
}
