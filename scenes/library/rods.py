"""Pointed rods that meet the ground in one point: dropped, sliding, hinged, and the rimless wheel. World z up.

All move in the x-z plane. A point is the vertex of a hull, so that the point of contact is that of the formulas.
"""

from __future__ import annotations

import math

import numpy as np

from ...collision.poses import from_axis_angle
from ...collision.shapes import ConvexHull
from ..builder import SceneBuilder
from ..joint_specs import Planar, Revolute
from ..spec import SceneSpec
from .facts import Entry, Fact, Play, at_most

G = 9.81
KANE, PAINLEVE = "Kane's double pendulum", "Painlevé's rod"  # in docs/references.md
X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
DOWN_Y = (0.0, -1.0, 0.0)
IN_THE_PLANE = Planar(axis=DOWN_Y, axis2=X)  # coordinates: a turn from x to z, x, z


def pointed_rod(low: float, high: float, swell: float = -0.01) -> ConvexHull:
    """A rod along z between two points z = low and high [m]; its thick middle lies off the line, at x = swell [m]."""
    middle = (low + high) / 2
    return ConvexHull(((0, 0, low), (0, 0, high), (swell, swell, middle), (swell, -swell, middle)))


def rod_drop(*, tilt: float = math.radians(30), restitution: float = 1.0) -> SceneSpec:
    """A uniform rod, 1 m, 1 kg, that meets the smooth ground with its lower tip at 1 m/s, straight down; no gravity.

    tilt: from the vertical [rad]. K = 1 + 3 sin^2 tilt: its middle leaves at -1 + (1 + e)/K, it turns at
    6 sin tilt (1 + e)/K.
    """
    b = SceneBuilder((0.0, 0.0, 0.0))
    b.add_plane(friction=0.0, restitution=restitution)
    _rod(b, tilt, velocity=(0.0, 0.0, -1.0), restitution=restitution)
    return b.build()


def falling_ladder(*, tilt: float = math.radians(10)) -> SceneSpec:
    """A uniform rod, 1 m, 1 kg, that stands on the smooth ground and falls from rest; tilt: from the vertical [rad].

    Its middle falls straight down; the upper tip strikes at sqrt(3 g L cos tilt).
    """
    b = SceneBuilder()
    b.add_plane(friction=0.0)
    _rod(b, tilt)
    return b.build()


def _rod(b: SceneBuilder, tilt: float, velocity=(0.0, 0.0, 0.0), restitution: float = 0.0) -> None:
    """A free rod of 1 m, its lower tip on the ground."""
    b.add_body(
        "rod", [pointed_rod(-0.5, 0.5)], mass=1.0, com=(0, 0, 0), inertia=(1 / 12, 1 / 12, 1e-4),
        position=(0.0, 0.0, math.cos(tilt) / 2), quaternion=from_axis_angle(Y, tilt), linear_velocity=velocity,
        friction=0.0, restitution=restitution,
    )  # fmt: skip


def painleve_rod(
    *, angle: float = math.radians(31), speed: float = 30.0, friction: float = 5 / 3
) -> SceneSpec:  # fmt: skip
    """Glocker's sliding rod (1995, 5.3.4): 1 kg, 2 m, its front tip on the ground and leaning back; g = 10 m/s^2.

    angle: of the rod from the ground [rad]; speed: along x [m/s].  Friction lifts the rear the more the steeper it is,
    until at 0.8145 s no finite force holds the tip down ("impact without collision").
    """
    b = SceneBuilder((0.0, 0.0, -10.0))
    b.add_plane(friction=friction)
    b.add_link(
        "rod", joint=IN_THE_PLANE, mass=1.0, com=(0, 0, 0), inertia=(1 / 3, 1 / 3, 1e-4),
        shapes=[pointed_rod(-1.0, 1.0, 0.1)], friction=friction,
        q0=(math.pi / 2 - angle, 0.0, math.sin(angle)), v0=(0.0, speed, 0.0),
    )  # fmt: skip
    return b.build()


def kane_pendulum(
    *, restitution: float = 0.5, friction: float = 0.5, angles: tuple[float, float] = (20.0, 30.0),
    rates: tuple[float, float] = (-0.1, -0.2),
) -> SceneSpec:  # fmt: skip
    """Kane and Levinson's double pendulum at the instant its tip meets the rough ground: rods of 1 m, 1 kg.

    angles [deg] from straight down, towards x, and rates [rad/s], both absolute. Slip reverses in the impact, and
    Newton's law gains energy.
    """
    b = SceneBuilder()
    upper, lower = (math.radians(x) for x in angles)
    height = math.cos(upper) + math.cos(lower)
    b.add_plane(offset=-height, friction=friction, restitution=restitution)
    side = 1 / 12
    b.add_link(
        "upper", joint=Revolute(DOWN_Y), mass=1.0, com=(0, 0, -0.5), inertia=(side, side, 0.0), q0=upper, v0=rates[0]
    )
    b.add_link(
        "lower", "upper", joint=Revolute(DOWN_Y), position=(0.0, 0.0, -1.0), mass=1.0, com=(0, 0, -0.5),
        inertia=(side, side, 0.0), shapes=[pointed_rod(-1.0, -0.1)], friction=friction,
        restitution=restitution, q0=lower - upper, v0=rates[1] - rates[0],
    )  # fmt: skip
    return b.build()


def rimless_wheel(
    *, spokes: int = 8, slope: float = 0.08, length: float = 1.0, gyration: float = 0.1
) -> SceneSpec:  # fmt: skip
    """A wheel of spokes without a rim that rolls down a slope in its steady gait (McGeer 1990); 1 kg.

    slope [rad]: the ground is level, gravity is tilted. length: of a spoke [m]; gyration: radius of gyration k about
    the hub [m]. a = pi/spokes: an impact keeps (k^2 + l^2 cos 2a)/(k^2 + l^2) of the rate. It starts as an impact ends.
    """
    half = math.pi / spokes
    b = SceneBuilder((G * math.sin(slope), 0.0, -G * math.cos(slope)))
    b.add_plane(friction=5.0)
    angles = [half * (2 * k + 1) for k in range(spokes)]
    tips = [(length * math.sin(t), y, -length * math.cos(t)) for t in angles for y in (-0.05, 0.05)]
    rate, height = wheel_rate(spokes, slope, length, gyration), length * math.cos(half)
    side = gyration**2
    b.add_link(
        "wheel", joint=IN_THE_PLANE, mass=1.0, com=(0, 0, 0), inertia=(side / 2 + 1e-3, side, side / 2 + 1e-3),
        shapes=[ConvexHull(tips)], friction=5.0, q0=(0.0, 0.0, height),
        v0=(-rate, rate * height, rate * length * math.sin(half)),
    )  # fmt: skip
    return b.build()


def wheel_rate(spokes: int, slope: float, length: float, gyration: float) -> float:
    """The rate after each impact of the steady gait [rad/s]: w^2 = kept^2 (w^2 + 4 g l sin a sin slope/(k^2 + l^2))."""
    half, inertia = math.pi / spokes, gyration**2 + length**2
    kept = wheel_keeps(spokes, length, gyration)
    gain = 4 * G * length * math.sin(half) * math.sin(slope) / inertia
    return kept * math.sqrt(gain / (1 - kept**2))


def wheel_keeps(spokes: int, length: float, gyration: float) -> float:
    """The part of the rate that an impact keeps: angular momentum about the new tip is conserved."""
    return (gyration**2 + length**2 * math.cos(2 * math.pi / spokes)) / (gyration**2 + length**2)


# -- facts --------------------------------------------------------------------------------------------
# Steps, and so tolerances, are of second order where a contact rotates with its body, like a rod's tip on the ground.

_SHARP = 1e-9  # tolerance of an impact that starts within a gap band of its position


def _drop(degrees: float, velocity: float, rate: float) -> Play:
    return Play(
        parameters={"tilt": math.radians(degrees)},
        duration=0.02,
        facts=(
            Fact("velocity of its middle [m/s]", velocity, _SHARP, lambda p: p.velocity("rod")[-1, 2]),
            Fact("rate it turns with [rad/s]", rate, _SHARP, lambda p: p.spin("rod")[-1, 1]),
        ),
    )


_DROPS = (
    _drop(30, 0.142857142857, 3.428571428571),
    _drop(45, -0.2, 3.394112549695),
    _drop(60, -0.384615384615, 3.197632260127),
)


def _hardest(p) -> int:
    """Index of the impact that closes fastest."""
    return int(np.argmin(p.event("u_before")[:, 2]))


_LADDER = Play(
    duration=0.6,
    frame_dt=0.01,
    max_dt=1e-3,
    facts=(
        Fact(
            "speed of the tip as it strikes: sqrt(3 g L cos tilt) [m/s]", math.sqrt(3 * G * math.cos(math.radians(10))),
            2e-5, lambda p: -p.event("u_before")[_hardest(p), 2],
        ),
        # by quadrature of the energy: d tilt/dt = sqrt(12 g (cos tilt_0 - cos tilt)/(L (1 + 3 sin^2 tilt)))
        Fact("time it strikes [s]", 0.516571661303, 5e-6, lambda p: p.event("t")[_hardest(p)]),
        at_most(
            "how far its middle leaves the vertical [m]", 1e-9, lambda p: np.abs(p.position("rod")[:, :2]).max()
        ),
    ),
)  # fmt: skip


def _brake(p) -> float:
    """Time of the rod's largest deceleration: the frame in which it loses most of its velocity along the ground [s]."""
    return float(p.t[np.argmin(np.diff(p.rates("rod")[:, 1]))])


_PAINLEVE = Play(
    duration=1.0,
    frame_dt=1e-3,
    max_dt=1e-3,
    facts=(
        # the smooth motion's equations, by Runge-Kutta of order 8 with a tolerance of 1e-12
        Fact(
            "place along the ground at 0.7 s [m]",
            16.812393692910,
            1e-5,
            lambda p: p.coordinates("rod")[700, 1],
            PAINLEVE,
        ),
        Fact(
            "rate it pitches with at 0.7 s [rad/s]",
            0.660625677934,
            5e-5,
            lambda p: -p.rates("rod")[700, 0],
            PAINLEVE,
        ),
        # there the smooth motion ends: the force that it needs grows beyond all bounds
        Fact("when it is slowed hardest [s]", 0.814549659, 2e-3, _brake, PAINLEVE),
        at_most("energy gained, in parts of the kinetic [J/J]", 1e-6, lambda p: p.energy_gain, PAINLEVE),
    ),
)


def _kane(law: str, restitution: float, energy: float, *, more: tuple[Fact, ...] = ()) -> Play:
    said = Fact(
        f"{law}: kinetic energy after [J]",
        energy,
        1e-10,
        lambda p: p.event("energy_after")[0],
        "Kane's double pendulum",
    )
    return Play((said, *more), {"restitution": restitution}, duration=0.01, law=law)


_KANE_MOVES = (
    Fact(
        "kinetic energy before [J]",
        0.0231814109,
        1e-10,
        lambda p: p.event("energy_before")[0],
        "Kane's double pendulum",
    ),
    # at the tip, which is B, against the floor
    Fact("slip before [m/s]", -0.2671743428, 1e-10, lambda p: -p.event("u_before")[0, 0], KANE),
    Fact(
        "slip after, reversed [m/s]", 0.0063068765, 1e-10, lambda p: -p.event("u_after")[0, 0], "Kane's double pendulum"
    ),
    Fact("rebound [m/s]", 0.0435295266, 1e-10, lambda p: p.event("u_after")[0, 2], KANE),
)
_KANE = (
    _kane("stronge", 0.5, 0.0128236780, more=_KANE_MOVES),
    # from the final rates (-0.214207309439, 0.253903235688) rad/s, with M = ((4/3, cos(10)/2), (., 1/3))
    _kane(
        "stronge",
        0.8,
        0.5 * (4 / 3 * 0.214207309439**2 + 0.253903235688**2 / 3)
        - 0.5 * math.cos(math.radians(10)) * 0.214207309439 * 0.253903235688,
    ),
    _kane("poisson", 0.5, 0.0126356768),
    _kane("newton", 0.5, 0.0170882544),
)

_WHEEL_KEEPS = wheel_keeps(8, 1.0, 0.1) ** 2
_WHEEL = Play(
    duration=6.0,
    max_dt=5e-4,
    facts=(
        *(
            Fact(
                f"part of the energy that impact {k + 1} keeps", _WHEEL_KEEPS, 1e-6,
                lambda p, k=k: p.event("energy_after")[k] / p.event("energy_before")[k],
            )
            for k in (0, 3)
        ),
        Fact(
            "rate after impact 4 [rad/s]", wheel_rate(8, 0.08, 1.0, 0.1), 5e-6,
            lambda p: math.sqrt(2 * p.event("energy_after")[3] / 1.01),
        ),
    ),
)  # fmt: skip

ENTRIES = {
    "rod_drop": Entry(rod_drop, "a tilted rod meets the ground with its tip", _DROPS),
    "falling_ladder": Entry(falling_ladder, "a rod that stood on a smooth floor falls", (_LADDER,)),
    "painleve_rod": Entry(painleve_rod, "Glocker's rod: impact without collision", (_PAINLEVE,)),
    "kane_pendulum": Entry(kane_pendulum, "Kane's double pendulum: Newton's law gains energy", _KANE),
    "rimless_wheel": Entry(rimless_wheel, "spokes without a rim, down a slope in a steady gait", (_WHEEL,)),
}
