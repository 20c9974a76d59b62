"""Multi 8 to 12: joints at their limits, which are contacts: lambda = -(1 + e) qd_j/(M^-1)_jj (4.7). World W, z up."""

from __future__ import annotations

import math

import numpy as np

from ...builder import SceneBuilder
from ...joint_specs import Prismatic, Revolute
from ...spec import SceneSpec
from ..facts import Entry, Fact, Play, at_most

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
NO_WEIGHT = (0.0, 0.0, 0.0)


def multi_08(*, restitution: float = 0.6) -> SceneSpec:
    """A slider of 2 kg between limits 0 and 1 m, in the middle, towards 0 at 1.5 m/s; no gravity.

    It comes back at e v and has lost (1 - e^2) m v^2/2.
    """
    b = SceneBuilder(NO_WEIGHT)
    joint = Prismatic(X, limits=(0.0, 1.0), restitution=restitution)
    b.add_link("slider", joint=joint, mass=2.0, inertia=NO_WEIGHT, q0=0.5, v0=-1.5)
    return b.build()


def multi_09(*, restitution: float = 0.6) -> SceneSpec:
    """A rod, 1 m, 1 kg, hung on a hinge about y with limits of 0.6 rad to both sides, let go at 0 with 3 rad/s.

    It reaches a limit with T = I w^2/2 - m g L (1 - cos 0.6)/2 and leaves it with e^2 T.
    """
    b = SceneBuilder()
    joint = Revolute(Y, limits=(-0.6, 0.6), restitution=restitution)
    b.add_link("rod", joint=joint, mass=1.0, com=(0, 0, -0.5), inertia=(1 / 12, 1 / 12, 0.0), v0=3.0)
    return b.build()


def multi_10() -> SceneSpec:
    """An arm of two rods, 1 m, 1 kg, about z, q = (0.3, 0.7), q' = (0.5, -1.2): its elbow is at its limit, e = 0.4."""
    return _arm((None, (0.7, 2.0)))


def multi_11() -> SceneSpec:
    """The arm of multi_10 with its shoulder at its limit."""
    return _arm(((-1.0, 0.3), None))


def _arm(limits) -> SceneSpec:
    b = SceneBuilder(NO_WEIGHT)
    for k, (name, parent) in enumerate((("shoulder", "world"), ("elbow", "shoulder"))):
        b.add_link(
            name, parent, joint=Revolute(Z, limits=limits[k], restitution=0.4), position=(float(k), 0.0, 0.0),
            mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.0, 1 / 12, 1 / 12), q0=ARM_Q[k], v0=ARM_V[k],
        )  # fmt: skip
    return b.build()


def multi_12() -> SceneSpec:
    """A rod, 1 m, 1 kg, level on its hinge about y, which its limit keeps from falling: it rests there."""
    b = SceneBuilder()
    joint = Revolute(Y, limits=(-1.0, 0.0))  # a turn about y lowers what points along x
    b.add_link("rod", joint=joint, mass=1.0, com=(0.5, 0, 0), inertia=(0.0, 1 / 12, 1 / 12))
    return b.build()


ARM_Q, ARM_V = (0.3, 0.7), (0.5, -1.2)

# -- facts --------------------------------------------------------------------------------------------

_SHARP = 1e-9
_FOREVER = Play(
    (at_most("drift of energy in 60 s with e = 1, in parts of the kinetic [J/J]", 1e-7, lambda p: p.energy_drift),),
    {"restitution": 1.0},
    duration=60.0,
    frame_dt=0.1,
    max_dt=1e-3,
)
_SLIDER = Play(
    duration=0.5,
    frame_dt=0.1,
    facts=(
        # touching is a gap of 1e-9 m, at 1.5 m/s
        Fact("time of impact [s]", 1 / 3, 1e-9, lambda p: p.event("t")[0]),
        Fact("velocity after [m/s]", 0.9, _SHARP, lambda p: p.rate("slider")[-1]),
        Fact("energy gained [J]", -1.44, _SHARP, lambda p: p.kinetic[-1] - p.kinetic[0]),
        Fact("impulse [N s]", 2 * 1.6 * 1.5, _SHARP, lambda p: p.event("impulse")[0, 2]),
    ),
)
_STRIKES = 9 / 6 - 9.81 * (1 - math.cos(0.6)) / 2  # kinetic energy at the limit [J]
_ROD = Play(
    duration=1.0,
    max_dt=1e-3,
    facts=(
        Fact("kinetic energy at the limit [J]", _STRIKES, 1e-8, lambda p: p.event("energy_before")[0]),
        Fact(
            "part of it that is left: e^2", 0.36, _SHARP,
            lambda p: p.event("energy_after")[0] / p.event("energy_before")[0],
        ),
    ),
)  # fmt: skip


def _struck_arm(joint: int) -> Play:
    """Facts by 4.7, with M of two uniform rods in joint coordinates; gravity is off, so that free motion follows."""
    m11, m12, m22 = 5 / 3 + math.cos(ARM_Q[1]), 1 / 3 + math.cos(ARM_Q[1]) / 2, 1 / 3
    M = np.array([[m11, m12], [m12, m22]])
    inverse, v = np.linalg.inv(M), np.array(ARM_V)
    impulse = -1.4 * v[joint] / inverse[joint, joint]
    after = v + inverse[:, joint] * impulse
    return Play(
        duration=0.1,
        frame_dt=0.01,
        facts=(
            Fact("time of impact [s]", 0.0, 1e-8, lambda p: p.event("t")[0]),
            Fact("impulse, along or against the joint [N m s]", abs(impulse), _SHARP,
                 lambda p: p.event("impulse")[0, 2]),
            Fact("rate of the joint after [rad/s]", 0.4 * abs(v[joint]), _SHARP,
                 lambda p: p.event("u_after")[0, 2]),
            Fact("kinetic energy after [J]", after @ M @ after / 2, 1e-8, lambda p: p.kinetic[-1]),
            Fact("angular momentum about the shoulder after [kg m^2/s]", M[0] @ after, 1e-8,
                 lambda p: p.momenta[1][-1, 2]),
        ),
    )  # fmt: skip


_REST = Play(
    duration=10.0,
    frame_dt=0.1,
    facts=(
        # contacts touch within ten gap bands
        at_most("how far it leaves its limit in 10 s [rad]", 1e-8, lambda p: np.abs(p.joint("rod")).max()),
        at_most("its rate [rad/s]", 1e-8, lambda p: np.abs(p.rate("rod")).max()),
    ),
)

ENTRIES = {
    "multi_08": Entry(multi_08, "Multi 8: a slider between its limits", (_SLIDER, _FOREVER)),
    "multi_09": Entry(multi_09, "Multi 9: a hung rod between its limits", (_ROD, _FOREVER)),
    "multi_10": Entry(multi_10, "Multi 10: an arm's elbow strikes its limit", (_struck_arm(1),)),
    "multi_11": Entry(multi_11, "Multi 11: an arm's shoulder strikes its limit", (_struck_arm(0),)),
    "multi_12": Entry(multi_12, "Multi 12: a rod rests on its limit", (_REST,)),
}
