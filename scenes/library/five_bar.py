"""A planar five-bar, as in parallel robots: two arms hinged on the ground, two forearms that meet at the tip.

Two degrees of freedom: with motors on both arms their torques are unique, with a third they can strain against each
other (Kim 2012, section 3.1; see `constrained_inverse`). Bars are uniform, thin, of 1 kg, in x-z; nothing touches.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..builder import SceneBuilder
from ..joint_specs import Motor, Revolute
from ..spec import SceneSpec
from .facts import Entry, Play, at_most

G = 9.81
HINGE = Revolute((0.0, -1.0, 0.0))  # a positive turn goes from x to z
HALF, ARM, FOREARM = 0.1, 0.4, 0.6  # [m] half the distance of the hinges on the ground, lengths


def five_bar(*, angle: float = 1.0, held: bool = True) -> SceneSpec:
    """The five-bar in the pose that is the same on both sides, its tip above its arms.

    angle: of the right arm, up from the ground [rad].  held: whether motors on the arms carry its weight.
    """
    b = SceneBuilder((0.0, 0.0, -G))
    forearm_angle = math.atan2(_rise(angle), -_reach(angle))  # of the right forearm, from the ground
    for side, sign in (("right", 1), ("left", -1)):
        own = [angle, forearm_angle] if sign > 0 else [math.pi - angle, math.pi - forearm_angle]
        motor = Motor("torque", target=sign * holding_torque(angle)) if held else None
        joint = dataclasses.replace(HINGE, motor=motor)
        _bar(b, f"{side} arm", "world", sign * HALF, ARM, joint, own[0])
        _bar(b, f"{side} forearm", f"{side} arm", ARM, FOREARM, HINGE, own[1] - own[0])
    b.add_loop("right forearm", (FOREARM, 0, 0), "left forearm", (FOREARM, 0, 0), joint=HINGE)
    return b.build()


def holding_torque(angle: float) -> float:
    """Torque of the right motor that carries the weight of the bars, the opposite of the left's [N m].

    Half the slope of the potential energy along the motion in which both sides do the same.
    """
    knee = ARM * math.sin(angle)
    return G / 2 * (3 * ARM * math.cos(angle) + knee * _reach(angle) / _rise(angle))


def _reach(angle: float) -> float:
    """Distance from the middle to the knee [m]."""
    return HALF + ARM * math.cos(angle)


def _rise(angle: float) -> float:
    """Height from the knee to the tip [m]."""
    return math.sqrt(FOREARM**2 - _reach(angle) ** 2)


def _bar(b: SceneBuilder, name: str, parent: str, at: float, length: float, joint: Revolute, q0: float) -> None:
    side = length**2 / 12
    b.add_link(
        name, parent, joint=joint, position=(at, 0, 0), mass=1.0, com=(length / 2, 0, 0), inertia=(0, side, side), q0=q0
    )


_HOLDING = Play(
    (
        # the pose is not stable: rounding grows as e^(5 t)
        at_most("any joint, off where it started [rad]", 1e-9, lambda p: np.abs(p.q - p.q[0]).max()),
    ),
    duration=1.0,
)
_FALLING = Play((at_most("change of the energy [J/J]", 1e-6, lambda p: p.energy_drift),), {"held": False}, duration=1.0)

ENTRIES: dict[str, Entry] = {
    "five_bar": Entry(five_bar, "a planar five-bar that two motors hold against its weight", (_HOLDING, _FALLING)),
}
