"""Rolling and slipping: a ball on a turntable, a coin that rolls round, the tippe top. World z up, ground z = 0."""

from __future__ import annotations

import math

import numpy as np

from ...collision.poses import from_axis_angle
from ...collision.shapes import Cylinder, Plane, Sphere
from ..builder import SceneBuilder
from ..spec import SceneSpec
from .facts import Entry, Fact, Play, at_most

G = 9.81
Y = (0.0, 1.0, 0.0)


def spinning_platter(
    *, rate: float = 2.0, radius: float = 0.1, start: tuple[float, float] = (0.3, 0.0),
    velocity: tuple[float, float] = (0.0, 0.3),
) -> SceneSpec:  # fmt: skip
    """A ball of 1 kg that rolls without slip on a turntable, which turns about the world's z at `rate` [rad/s].

    radius: of the ball [m]; start (x, y) [m] and velocity (x, y) [m/s], in the world. The ball goes round
    a circle at 2/7 of the rate, about start + 7/(2 rate) z x velocity.
    """
    b = SceneBuilder()
    b.add_static("platter", [Plane()], angular_velocity=(0.0, 0.0, rate), friction=1.0)
    (x, y), (vx, vy) = start, velocity
    slip = (vx + rate * y, vy - rate * x)  # velocity of the ball's centre over the platter's surface
    b.add_body(
        "ball", [Sphere(radius)], mass=1.0, position=(x, y, radius), linear_velocity=(vx, vy, 0.0),
        angular_velocity=(-slip[1] / radius, slip[0] / radius, 0.0), friction=1.0,
    )  # fmt: skip
    return b.build()


def coin(
    *, lean: float = math.radians(20), turn: float = 6.0, speed: float = 0.3, radius: float = 0.0116,
    thickness: float = 0.0023, mass: float = 0.0075, friction: float = 0.5,
) -> SceneSpec:  # fmt: skip
    """A coin that rolls without slip: round a circle, leaning inwards, or upright straight along y at `speed` [m/s].

    lean: from upright [rad]; turn: of its path about the vertical [rad/s], if it leans.  radius, thickness [m],
    mass [kg].  The middle of the circle is the origin.
    """
    b = SceneBuilder(gap_band=1e-9)
    b.add_plane(friction=friction)
    position, along, w = steady_coin(lean, turn, radius, thickness / 2)
    if not lean:
        position, along, w = (0.0, 0.0, radius), speed, (-speed / radius, 0.0, 0.0)
    b.add_body(
        "coin", [Cylinder(radius, thickness / 2)], mass=mass, position=position, friction=friction,
        quaternion=from_axis_angle(Y, math.pi / 2 - lean), linear_velocity=(0.0, along, 0.0), angular_velocity=w,
    )  # fmt: skip
    return b.build()


def steady_coin(
    lean: float, turn: float, R: float, h: float
) -> tuple[tuple[float, ...], float, tuple[float, float, float]]:
    """Position of its centre, its speed along y and its angular velocity in steady motion; R radius, h half thickness.

    The axis e = (sin a, 0, cos a), a = pi/2 - lean, goes round the vertical at W = turn, and the coin about it at s.
    The point of contact is (B, 0, -A) from the centre, A = R sin a + h cos a, B = R cos a - h sin a. It does not slip:
    V = -W B - s R. With the forces m (-W V, 0, g) there, the moment about the centre turns the angular momentum:
        W sin a (I3 (s + W cos a) - I1 W cos a) = m A W V - m g B       (by m: I3 = R^2/2, I1 = R^2/4 + h^2/3)
    """
    sin, cos = math.cos(lean), math.sin(lean)
    A, B = R * sin + h * cos, R * cos - h * sin
    I1, I3, W = R * R / 4 + h * h / 3, R * R / 2, turn
    s = -(A * B * W**2 + G * B + (I3 - I1) * W**2 * sin * cos) / (W * (sin * I3 + A * R)) if lean else 0.0
    V = -W * B - s * R
    return (V / W, 0.0, A), V, (s * sin, 0.0, W + s * cos)


def tippe_top(*, spin: float = 180.0, tilt: float = 0.1, friction: float = 0.3) -> SceneSpec:
    """Leine and Glocker's tippe top (2003), 6 g, with the numbers of Siconos' tippe_top.py.

    A sphere of 1.5 cm whose middle is 0.3 cm above the centre of mass, and a stem: one of 0.5 cm, 1.6 cm above.
    I1 = 8e-7, I3 = 7e-7 kg m^2.  spin: about its axis [rad/s]; tilt: of the axis at the start [rad].
    While it stands on one sphere, whatever the friction, Jellett's L . (contact - centre of mass) does not change.
    Slip turns the top upside down: with Coulomb's friction at a point it soon rolls, and stays as it is; they add the
    friction of drilling (Contensou), which is not modelled here.
    """
    b = SceneBuilder()
    b.add_plane(friction=friction)
    axis = (math.sin(tilt), 0.0, math.cos(tilt))
    b.add_body(
        "top",
        [Sphere(TOP_RADIUS, position=(0, 0, TOP_SHIFT)), Sphere(0.005, position=(0, 0, 0.016))],
        mass=0.006,
        com=(0.0, 0.0, 0.0),
        inertia=(TOP_I1, TOP_I1, TOP_I3),
        position=(0.0, 0.0, TOP_RADIUS - TOP_SHIFT * math.cos(tilt)),
        quaternion=from_axis_angle(Y, tilt),
        angular_velocity=tuple(spin * x for x in axis),
        friction=friction,
    )
    return b.build()


TOP_RADIUS, TOP_SHIFT, TOP_I1, TOP_I3 = 0.015, 0.003, 8e-7, 7e-7

# -- facts --------------------------------------------------------------------------------------------
# Steps, and so tolerances, are of second order where a contact rotates with its body, like that of a leaning coin.

_PERIOD = 7 * math.pi / 2  # period of the circle, at 2 rad/s
_PLATTER = Play(
    duration=_PERIOD,
    frame_dt=_PERIOD / 64,
    facts=(
        at_most(
            "distance from a circle of 0.525 m about (-0.225, 0) [m]", 1e-5,
            lambda p: np.abs(np.hypot(p.position("ball")[:, 0] + 0.225, p.position("ball")[:, 1]) - 0.525).max(),
        ),
        at_most(
            "distance from its start after a period of 10.995574 s [m]", 1e-5,
            lambda p: np.linalg.norm(p.position("ball")[-1] - p.position("ball")[0]),
        ),
    ),
)  # fmt: skip


def _circle(p):
    """Distance of the coin from its exact position at each frame (F,) [m]."""
    (radius, _, height), _, _ = steady_coin(math.radians(20), 6.0, 0.0116, 0.00115)
    want = np.stack([radius * np.cos(6 * p.t), radius * np.sin(6 * p.t), np.full_like(p.t, height)], -1)
    return np.linalg.norm(p.position("coin") - want, axis=-1)


_COIN = (
    Play(
        duration=math.pi / 3,
        max_dt=1e-3,
        facts=(
            at_most("distance from its place on the circle, one round [m]", 1e-5, lambda p: _circle(p).max()),
            at_most(
                "change of its lean, one round [rad]", 1e-5,
                lambda p: np.ptp(np.arcsin(np.clip(p.axes("coin")[:, 2, 2], -1, 1))),
            ),
            at_most("change of its energy, in parts of the kinetic [J/J]", 1e-6, lambda p: p.energy_drift),
        ),
    ),
    Play(
        parameters={"lean": 0.0},
        duration=1.0,
        facts=(
            Fact("way it rolls upright in 1 s at 0.3 m/s [m]", 0.3, 1e-9, lambda p: p.position("coin")[-1, 1]),
            at_most("how far it leaves its line [m]", 1e-9, lambda p: np.abs(p.position("coin")[:, 0]).max()),
        ),
    ),
)  # fmt: skip


def _jellett(p):
    """L . (contact - centre of mass), in parts of the first (F,), while the top stands on its large sphere."""
    axes, spin = p.axes("top"), p.spin("top")
    e = axes[:, :, 2]
    L = TOP_I1 * spin + (TOP_I3 - TOP_I1) * np.sum(spin * e, -1, keepdims=True) * e
    invariant = np.sum(L * (TOP_SHIFT * e - np.array([0, 0, TOP_RADIUS])), -1)
    stands = p.position("top")[:, 2] + 0.016 * e[:, 2] > 0.006  # the stem's sphere is in the air
    return invariant[stands] / invariant[0]


_TIPPE = Play(
    duration=1.0,
    max_dt=2.5e-4,
    facts=(
        at_most("drift of Jellett's invariant, in parts", 1e-6, lambda p: np.abs(_jellett(p) - 1).max(), "Heavy tops"),
        at_most("energy gained, in parts of the kinetic [J/J]", 1e-6, lambda p: p.energy_gain),
    ),
)

ENTRIES = {
    "spinning_platter": Entry(spinning_platter, "a ball that rolls on a turntable", (_PLATTER,)),
    "coin": Entry(coin, "a coin that rolls, straight or round a circle", _COIN),
    "tippe_top": Entry(tippe_top, "Leine and Glocker's tippe top", (_TIPPE,)),
}
