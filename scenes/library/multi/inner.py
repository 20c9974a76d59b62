"""Multi 6, 7 and 14: fictitious forces, masses moved from inside, motors. No gravity."""

from __future__ import annotations

import math

import numpy as np

from ...builder import SceneBuilder
from ...joint_specs import Motor, Prismatic, Revolute
from ...spec import SceneSpec
from ..facts import Entry, Fact, Play, at_most

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
NO_WEIGHT, NO_INERTIA = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
ARM, BEAD = 1.0, 0.5  # inertia [kg m^2], mass [kg]


def multi_06(*, held: bool = False) -> SceneSpec:
    """A bead on an arm that turns about z at 3 rad/s, 0.2 m from its hinge at the start; I = 1 kg m^2, m = 0.5 kg.

    If free, (I + m r^2) w stays; at constant w, r = 0.2 cosh(w t).  held: a flywheel of 1e12 kg m^2 keeps w constant.
    """
    b = SceneBuilder(NO_WEIGHT)
    b.add_link("arm", joint=Revolute(Z, armature=1e12 if held else 0.0), mass=1.0, inertia=(ARM,) * 3, v0=3.0)
    b.add_link("bead", "arm", joint=Prismatic(X), mass=BEAD, inertia=NO_INERTIA, q0=0.2)
    return b.build()


_PUBLISHED = 1e-8  # eight digits are given
_BEAD = (
    Play(
        (
            Fact("r at 0.5 s [m]", 0.46360248, _PUBLISHED, lambda p: p.joint("bead")[1]),
            Fact("r at 1 s [m]", 1.56618483, _PUBLISHED, lambda p: p.joint("bead")[2]),
            Fact("w at 1 s [rad/s]", 1.37437446, _PUBLISHED, lambda p: p.rate("arm")[2]),
            at_most("drift of (I + m r^2) w [kg m^2/s]", 1e-9,
                    lambda p: np.ptp((ARM + BEAD * p.joint("bead") ** 2) * p.rate("arm"))),
        ),
        duration=1.0,
        frame_dt=0.5,
        max_dt=1e-3,
    ),
    Play(
        (
            Fact("w held: r at 0.5 s [m]", 0.47048192, _PUBLISHED, lambda p: p.joint("bead")[1]),
            Fact("w held: r at 1 s [m]", 2.01353240, _PUBLISHED, lambda p: p.joint("bead")[2]),
        ),
        {"held": True},
        duration=1.0,
        frame_dt=0.5,
        max_dt=1e-3,
    ),
)  # fmt: skip


def multi_07() -> SceneSpec:
    """Inner motion moves the outside: a cart of 3 kg whose slider of 2 kg is driven 0.5 m along it; a base whose wheel,
    I = 0.1, is turned by 1 rad on it, I = 0.4 kg m^2. Both drives are damped critically, 10 rad/s.

    The cart moves by -0.2 m, the base by -0.2 rad: momentum stays zero.
    """
    b = SceneBuilder(NO_WEIGHT)
    b.add_link("cart", joint=Prismatic(X), mass=3.0, inertia=NO_INERTIA)
    b.add_link("slider", "cart", joint=Prismatic(X, motor=_drive(2 * 3 / 5, 0.5)), mass=2.0, inertia=NO_INERTIA)
    b.add_link("base", joint=Revolute(Z), mass=1.0, inertia=(1.0, 1.0, 0.4))
    b.add_link("wheel", "base", joint=Revolute(Z, motor=_drive(0.4 * 0.1 / 0.5, 1.0)), mass=1.0, inertia=(0.1,) * 3)
    return b.build()


def _drive(inertia: float, target: float) -> Motor:
    """A motor to the target for this reduced inertia, at 10 rad/s and damped critically."""
    return Motor("position", kp=100 * inertia, kd=20 * inertia, target=target)


_SHIFT = Play(
    duration=4.0,  # the rest of the way: 41 e^-40
    facts=(
        Fact("the cart went [m]", -0.2, 1e-12, lambda p: p.joint("cart")[-1]),
        Fact("the slider went along it [m]", 0.5, 1e-12, lambda p: p.joint("slider")[-1]),
        Fact("the base turned [rad]", -0.2, 1e-12, lambda p: p.joint("base")[-1]),
        at_most("momentum of cart and slider [kg m/s]", 1e-12, lambda p: np.abs(p.momenta[0]).max()),
        at_most(
            "angular momentum of base and wheel [kg m^2/s]", 1e-12,
            lambda p: np.abs(0.5 * p.rate("base") + 0.1 * p.rate("wheel")).max(),
        ),
    ),
)  # fmt: skip

TORQUE, INERTIA, STIFF, DAMP, GOAL = 0.7, 0.5, 20.0, 2.0, 1.0


def multi_14() -> SceneSpec:
    """Three wheels of 0.5 kg m^2: "pushed" by 0.7 N m; "stopped", pushed likewise, at its limit; and "steered" to 1 rad
    by a position motor of 20 N m/rad and 2 N m s/rad."""
    push = Motor(target=TORQUE)
    b = SceneBuilder(NO_WEIGHT)
    for name, joint in (
        ("pushed", Revolute(Z, motor=push)),
        ("stopped", Revolute(Z, motor=push, limits=(-1.0, 0.0))),
        ("steered", Revolute(Z, motor=Motor("position", kp=STIFF, kd=DAMP, target=GOAL))),
    ):
        b.add_link(name, joint=joint, mass=1.0, inertia=(INERTIA,) * 3)
    return b.build()


def _steering_angle(t: float) -> float:
    """Angle of the steered wheel: I q'' = kp (1 - q) - kd q', from rest at 0 [rad]."""
    decay, rate = DAMP / (2 * INERTIA), math.sqrt(STIFF / INERTIA - (DAMP / (2 * INERTIA)) ** 2)
    return GOAL * (1 - math.exp(-decay * t) * (math.cos(rate * t) + decay / rate * math.sin(rate * t)))


_MOTOR = Play(
    duration=2.0,
    max_dt=1e-3,
    facts=(
        Fact("pushed: tau t^2/(2 I) at 2 s [rad]", TORQUE / INERTIA * 2, 1e-9, lambda p: p.joint("pushed")[-1]),
        # ten gap bands
        at_most("stopped: how far it turns [rad]", 1e-8, lambda p: np.abs(p.joint("stopped")).max()),
        Fact("steered: at 0.5 s [rad]", _steering_angle(0.5), 1e-8, lambda p: p.joint("steered")[30]),
        Fact("steered: at 2 s [rad]", _steering_angle(2.0), 1e-8, lambda p: p.joint("steered")[-1]),
    ),
)

ENTRIES = {
    "multi_06": Entry(multi_06, "Multi 6: a bead on a turning arm, fictitious forces", _BEAD),
    "multi_07": Entry(multi_07, "Multi 7: masses moved from inside", (_SHIFT,)),
    "multi_14": Entry(multi_14, "Multi 14: motors, free, stopped and steered", (_MOTOR,)),
}
