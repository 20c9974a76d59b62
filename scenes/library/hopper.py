"""A one-legged hopper in the x-z plane, after Raibert (Legged Robots That Balance, 1986, ch. 2): a body, a hip, a leg
that is a spring between two stops, and a round foot.

Frames sit at the joints; all turns are from x to z (about -y), so that a positive pitch lifts the nose, which is at +x.
q = (pitch [rad], x, z of the hip [m], hip angle [rad], leg [m]): the leg is 0 when it is out, negative when pushed in.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...collision.poses import Array, from_axis_angle
from ...collision.shapes import Capsule, Sphere
from ..builder import SceneBuilder
from ..joint_specs import Motor, Planar, Prismatic, Revolute
from ..spec import SceneSpec
from .facts import Entry, Fact, Play, at_most

if TYPE_CHECKING:
    from .playing import Played

DOWN_Y, UP, DOWN = (0.0, -1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, -1.0)
BODY, THIGH, SHANK = 8.0, 0.6, 0.4  # [kg]
LEG, STROKE = 0.6, 0.2  # [m] hip to the foot's middle with the leg out, and how far it goes in
FOOT, TRUNK, HALF = 0.04, 0.1, 0.3  # [m] radii of foot and body, half the body's length between its round ends
SWING = 0.8  # [rad] to both sides
STIFFNESS, PRELOAD = 3000.0, 0.015  # [N/m] of the leg, [m] of the spring when the leg is out
TORQUE, THRUST = 40.0, 200.0  # [N m], [N] largest efforts of hip and leg
STANDING = LEG + FOOT  # [m] height of the hip with the leg out and upright


def hopper(
    *,
    height: float = STANDING + 0.2,
    speed: float = 0.0,
    pitch: float = 0.0,
    hip: float = 0.0,
    leg: float = 0.0,
    friction: float = 0.9,
    damping: float = 5.0,
) -> SceneSpec:
    """A body of 8 kg that hops on a leg of 1 kg.

    height: of the hip [m]; speed: along x [m/s]; pitch, hip [rad] and leg [m]: at the start.
    friction: of the ground; damping: of the leg [N s/m].
    """
    b = SceneBuilder()
    b.add_plane(friction=friction, name="ground")
    b.add_link(
        "body",
        joint=Planar(DOWN_Y, axis2=(1.0, 0.0, 0.0)),
        mass=BODY,
        inertia=(0.1, 1.0, 1.0),
        shapes=[Capsule(TRUNK, HALF, quaternion=from_axis_angle((0.0, 1.0, 0.0), math.pi / 2))],
        q0=(pitch, 0.0, height),
        v0=(0.0, speed, 0.0),
        friction=friction,
    )
    hinge = Revolute(DOWN_Y, limits=(-SWING, SWING), restitution=0.3, damping=0.1, motor=Motor(effort=TORQUE))
    b.add_link("thigh", "body", joint=hinge, mass=THIGH, com=(0.0, 0.0, -0.15), inertia=(0.005, 0.005, 0.001), q0=hip)
    spring = Prismatic(
        DOWN, limits=(-STROKE, 0.0), restitution=0.2, stiffness=STIFFNESS, rest=PRELOAD, damping=damping,
        motor=Motor(effort=THRUST),
    )  # fmt: skip
    foot = Sphere(FOOT, position=(0.0, 0.0, -LEG))
    rod = Capsule(FOOT / 2, LEG / 4, position=(0.0, 0.0, -0.75 * LEG), mask=0)  # visible, touches nothing
    b.add_link(
        "shank",
        "thigh",
        joint=spring,
        mass=SHANK,
        com=(0.0, 0.0, -0.45),
        inertia=(0.004, 0.004, 0.001),
        shapes=[foot, rod],
        q0=leg,
        friction=friction,
    )
    b.exclude("body", "shank")
    return b.build()


# -- facts --------------------------------------------------------------------------------------------
# Semi-implicit steps: with them a light foot rests exactly under a stiff spring; they are of order 1.

_H, _G = 1e-3, 9.81
_SEMI: Any = {"scheme": "semi_implicit", "max_dt": _H}


def stance(speed: float, damping: float, *, mass: float = BODY + THIGH) -> float:
    """Time [s] for which an upright leg that lands at `speed` [m/s] is compressed, its foot on the ground: that of
    m y'' = -m g + k (rest - y) - c y', y(0) = y = 0."""
    middle, d = PRELOAD - mass * _G / STIFFNESS, damping / (2 * mass)
    w = math.sqrt(STIFFNESS / mass - d * d)
    side = (-speed - d * middle) / w
    t = np.linspace(0.05, 0.3, 250_001)  # a microsecond apart
    y = middle + np.exp(-d * t) * (side * np.sin(w * t) - middle * np.cos(w * t))
    return float(t[np.argmax(y >= 0)])


def _at_the_stop(p: Played) -> Array:
    return p.event("dof") == 4


def _slip(p: Played) -> float:
    """Tangential part of the first impulse, in parts of the normal one."""
    x, y, n = p.event("impulse")[0]
    return math.hypot(x, y) / n


def _upright(p: Played) -> float:
    return float(np.abs(p.q[:, (0, 1, 3)]).max())


_DROP = Play(
    duration=1.0,
    **_SEMI,
    facts=(
        Fact("time at which the foot touches [s]", math.sqrt(2 * 0.2 / _G), _H, lambda p: p.event("t")[0]),
        Fact("mass it strikes with: the shank's, for the spring gives way [kg]", SHANK, 1e-9,
             lambda p: -p.event("impulse")[0, 2] / p.event("u_before")[0, 2]),
        Fact("part of that mass's energy that is lost", 1.0, 1e-9,
             lambda p: (p.event("energy_before") - p.event("energy_after"))[0]
             / (SHANK * p.event("u_before")[0, 2] ** 2 / 2)),
        Fact("time until the leg is out again, on its stop: of a damped spring [s]",
             stance(math.sqrt(2 * _G * 0.2), 5.0), _H, lambda p: p.event("t")[_at_the_stop(p)][0] - p.event("t")[0]),
        Fact("rate it leaves the stop with, in parts of that before", -0.2, 1e-9,
             lambda p: p.event("u_after")[_at_the_stop(p)][0, 2] / p.event("u_before")[_at_the_stop(p)][0, 2]),
        at_most("lean, and way along the ground [rad, m]", 1e-9, _upright),
        at_most("energy gained on the way, in parts of the largest kinetic [J/J]", 1e-9, lambda p: p.energy_gain),
    ),
)  # fmt: skip
_LEANING = Play(
    parameters={"hip": 0.3},
    duration=0.3,
    **_SEMI,
    facts=(
        at_most("tangential speed of the foot after it has touched [m/s]", 1e-9,
                lambda p: math.hypot(*p.event("u_after")[0, :2])),
        at_most("tangential part of its impulse: within friction", 0.9, _slip),
    ),
)  # fmt: skip
_SLIPPING = Play(
    parameters={"hip": 0.3, "friction": 0.05},
    duration=0.3,
    **_SEMI,
    facts=(Fact("tangential part of the foot's impulse: all of friction", 0.05, 1e-9, _slip),),
)

ENTRIES = {"hopper": Entry(hopper, "a body that hops on one leg, a spring between stops", (_DROP, _LEANING, _SLIPPING))}
