"""Multi 1 and 2: energy of a free box, and friction. World W, z up."""

from __future__ import annotations

import math

import numpy as np

from ....collision.shapes import Box
from ...builder import SceneBuilder
from ...spec import SceneSpec
from ..blocks import block_on_ramp, downhill
from ..facts import Entry, Fact, Play, at_most

G = 9.81


def multi_01(*, floor: bool = False) -> SceneSpec:
    """A box of 1 kg thrown with spin, its sides 0.4, 0.6 and 0.8 m: in the air, or over a smooth floor with e = 1."""
    b = SceneBuilder()
    if floor:
        b.add_plane(friction=0.0, restitution=1.0)
    b.add_body(
        "box", [Box((0.2, 0.3, 0.4))], mass=1.0, position=(0.0, 0.0, 0.8), linear_velocity=(0.3, 0.0, 0.0),
        angular_velocity=(0.5, 1.0, 1.5), friction=0.0, restitution=1.0,
    )  # fmt: skip
    return b.build()


_KEPT = at_most("drift of energy in 10 s, in parts of the kinetic [J/J]", 1e-12, lambda p: p.energy_drift)
_ENERGY = (
    Play((_KEPT,), duration=10.0),
    Play((_KEPT, at_most("drift of velocity along the floor [m/s]", 1e-12, lambda p: np.ptp(p.velocity("box")[:, 0]))),
         {"floor": True}, duration=10.0, max_dt=5e-4),
)  # fmt: skip


def multi_02(*, friction: float = 0.5, slope: float = math.radians(30), speed: float = 0.0) -> SceneSpec:
    """A cube on a slope, see block_on_ramp: at 30 deg it slides with mu = 0.5 and holds with 0.6."""
    return block_on_ramp(slope=slope, friction=friction, speed=speed)


_WAY, _SPEED = downhill(math.radians(30))
_SOLVED = 1e-8  # residual of the solver of resting contacts, over a second
_FRICTION = (
    Play(
        duration=1.0,
        facts=(
            Fact("acceleration at mu = 0.5 [m/s^2]", 0.6571454, 5e-8, lambda p: _SPEED(p)[-1]),
            Fact("way in 1 s [m]", 0.6571454 / 2, 5e-8, lambda p: _WAY(p)[-1]),
        ),
    ),
    Play((at_most("creep in 1 s at mu = 0.6 [m]", _SOLVED, lambda p: np.abs(_WAY(p)).max()),),
         {"friction": 0.6}, duration=1.0),
    Play(
        # a step may miss the end of sliding by mu g h^2
        (Fact("way to stop from 1 m/s [m]", 1 / G, 0.5 * G / 240**2, lambda p: p.position("block")[-1, 0]),),
        {"slope": 0.0, "speed": 1.0},
        duration=1.0,
    ),
)  # fmt: skip

ENTRIES = {
    "multi_01": Entry(multi_01, "Multi 1: energy of a free box, in the air and over a floor", _ENERGY),
    "multi_02": Entry(multi_02, "Multi 2: friction on a slope", _FRICTION),
}
