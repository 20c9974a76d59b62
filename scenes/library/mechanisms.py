"""Closed mechanisms: published benchmarks, gears, rolling without slip. World z up; nothing touches."""

from __future__ import annotations

import math

import numpy as np

from ...collision.plain import Numbers
from ...collision.poses import from_axis_angle
from ..builder import SceneBuilder
from ..joint_specs import Motor, Revolute
from ..loop_specs import Gear, Rolling, Spring
from ..spec import SceneSpec
from .facts import Entry, Fact, Play, at_most
from .linkages import HINGE, add_bar
from .rolling import steady_coin

G = 9.81
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def n_four_bar(*, windows: int = 2) -> SceneSpec:
    """IFToMM's benchmark A02: a row of square windows of bars of 1 m and 1 kg, hinged on the ground.

    The top moves at 1 m/s. Twice a turn all bars lie in one line, where the loops lose rank: there a window could
    fold, and must not.
    """
    b = SceneBuilder()
    upright = math.pi / 2
    for k in range(windows + 1):
        add_bar(b, f"leg {k}", "world", (float(k), 0, 0), 1.0, upright, v0=-1.0)
    for k in range(windows):
        add_bar(b, f"bar {k}", f"leg {k}", X, 1.0, -upright, v0=1.0)
        b.add_loop(f"bar {k}", X, f"leg {k + 1}", X, joint=HINGE)
    return b.build()


def andrews_squeezer() -> SceneSpec:
    """Andrews' squeezing mechanism: seven bodies in a plane, driven by a torque of 0.033 N m, in x-y, without gravity.

    Numbers and names are those of the Test Set for IVP Solvers (Mazzia and Magherini 2008), and of IFToMM's benchmark
    A03. The distances from the hinges define the centres of mass of K3, K5 and K7; the side does not matter.
    """
    b = SceneBuilder((0.0, 0.0, 0.0))
    beta, gamma, phi, delta, omega, epsilon = (
        -0.0617138900142764, 0.455279819163070, 0.222668390165886, 0.487364979543843, -0.222668390165886,
        1.23054744454982,
    )  # fmt: skip
    A, B = (-0.06934, -0.00227, 0.0), (-0.03635, 0.03273, 0.0)
    crank = Revolute(Z, motor=Motor("torque", target=0.033))

    def body(
        name: str,
        parent: str,
        at: Numbers,
        mass: float,
        inertia: float,
        com: tuple[float, float],
        q0: float,
        joint: Revolute,
    ) -> None:
        slim = inertia / 100  # plane motion does not depend on it; drawn as bars
        moments = (slim, inertia, inertia) if abs(com[0]) > abs(com[1]) else (inertia, slim, inertia)
        b.add_link(name, parent, joint=joint, position=at, mass=mass, com=(*com, 0.0), inertia=moments, q0=q0)

    body("K1", "world", (0.0, 0.0, 0.0), 0.04325, 2.194e-6, (0.00092, 0), beta, crank)
    body("K2", "K1", (0.007, 0.0, 0.0), 0.00365, 4.410e-7, (-0.0115, 0), 0.0, Revolute(Z))
    body("K3", "world", B, 0.02373, 5.255e-6, (0.01043, -0.01874), gamma, Revolute(Z))
    body("K5", "world", A, 0.07050, 1.169e-5, (0.02308, 0.00916), delta, Revolute(Z))
    body("K4", "K5", (0.04, 0.0, 0.0), 0.00706, 5.667e-7, (0, 0.01421 - 0.02), phi, Revolute(Z))
    body("K7", "world", A, 0.05498, 1.912e-5, (0.01228, -0.00449), epsilon, Revolute(Z))
    body("K6", "K7", (0.0, -0.04, 0.0), 0.00706, 5.667e-7, (0.02 - 0.01421, 0), omega, Revolute(Z))
    for name, end in (("K3", (0.0, -0.035, 0.0)), ("K4", (0.0, -0.02, 0.0)), ("K6", (0.02, 0.0, 0.0))):
        b.add_loop(name, end, "K2", (-0.028, 0.0, 0.0), joint=Revolute(Z), name=f"E of {name}")
    b.add_loop("K3", (0.02, -0.018, 0.0), "world", (0.014, 0.072, 0.0), joint=Spring(4530.0, 0.07785), name="spring")
    return b.build()


SMALL, LARGE = 0.1, 0.3  # [m] radii of the gears


def gear_pair(*, torque: float = 0.5) -> SceneSpec:
    """Two gears, solid discs of 1 and 9 kg: a constant torque [N m] on the larger drives both, opposite ways."""
    b = SceneBuilder()
    for name, radius, mass, at in (("small", SMALL, 1.0, SMALL + LARGE), ("large", LARGE, 9.0, 0.0)):
        spin = mass * radius**2 / 2
        motor = Motor("torque", target=torque) if name == "large" else None
        b.add_link(
            name, joint=Revolute(Y, motor=motor), position=(at, 0, 0), mass=mass, inertia=(spin / 2, spin, spin / 2)
        )
    b.add_loop("small", link_b="large", joint=Gear(-LARGE / SMALL))
    return b.build()


DISC = 0.2  # [m] radius


def rolling_disc(*, lean: float = math.radians(20), turn: float = 3.0) -> SceneSpec:
    """A thin disc that rolls without slip round a circle, leaning inwards; a constraint holds it, not friction.

    lean: from upright [rad]; turn: of its path about the vertical [rad/s].  The middle of the circle is the origin.
    """
    b = SceneBuilder()
    position, along, w = steady_coin(lean, turn, DISC, 0.0)
    flat = DISC**2 / 4
    b.add_body(
        "disc", mass=1.0, inertia=(flat, flat, 2 * flat), position=position,
        quaternion=from_axis_angle(Y, math.pi / 2 - lean), linear_velocity=(0.0, along, 0.0), angular_velocity=w,
    )  # fmt: skip
    b.add_loop("disc", joint=Rolling(DISC, axis=Z))
    return b.build()


def rolling_ball(*, slope: float = 0.2) -> SceneSpec:
    """A solid ball, 10 cm, 1 kg, that rolls without slip down a slope [rad]; the ground is level, gravity is tilted."""
    b = SceneBuilder((G * math.sin(slope), 0.0, -G * math.cos(slope)))
    b.add_body("ball", mass=1.0, inertia=(0.4 * 0.1**2,) * 3, position=(0, 0, 0.1))
    b.add_loop("ball", joint=Rolling(0.1))
    return b.build()


# -- facts --------------------------------------------------------------------------------------------
# Loops are closed to rounding after each step; what is left is the error of steps of order 4.

_TIGHT = 1e-12  # error of relations that the loops keep, between numbers of about one [m, rad]


_TOPS = {
    1: (-0.1950203019, -0.9807992057),
    2: (0.0578157958, 0.9983272679),
    5: (-0.8113104610, -0.5846155454),
    10: (0.3284581115, 0.9445185382),
}
_A02 = Play(
    duration=10.0,
    frame_dt=1.0,
    max_dt=2.5e-3,
    facts=(
        *(
            Fact(f"{'xz'[n]} of the first top at {t} s [m]", place[n], 5e-9,
                 lambda p, t=t, f=(math.cos, math.sin)[n]: f(p.joint("leg 0")[t]), "IFToMM's windows")
            for t, place in _TOPS.items() for n in range(2)
        ),
        at_most("change of the energy [J/J]", 1e-9, lambda p: p.energy_drift),
    ),
)  # fmt: skip

# at 0.03 s: coordinates, rates
_SQUEEZER = "Andrews' squeezer"  # in docs/references.md
_A03 = {
    "K1": (15.81077119629904, 1139.920302151208),
    "K2": (-15.75637105984298, -1424.379294994111),
    "K3": (0.04082224013073101, 11.03291221937134),
    "K4": (-0.5347301163226948, 19.29337464421385),
    "K5": (0.5244099658805304, 0.5735699284790808),
    "K6": (0.5347301163226948, -19.29337464421385),
    "K7": (1.048080741042263, 0.3231791658026955),
}
_SQUEEZER = Play(
    duration=0.03,
    frame_dt=0.03,
    max_dt=2e-5,
    facts=tuple(
        fact
        for name, (q, v) in _A03.items()
        for fact in (
            Fact(f"{name}: angle at 0.03 s [rad]", q, 5e-9, lambda p, name=name: p.joint(name)[-1], _SQUEEZER),
            Fact(f"{name}: rate at 0.03 s [rad/s]", v, 5e-6, lambda p, name=name: p.rate(name)[-1], _SQUEEZER),
        )
    ),
)


# effective inertia of the larger: its own, and the smaller's times the square of the ratio
_GEARED = 9 * LARGE**2 / 2 + (LARGE / SMALL) ** 2 * SMALL**2 / 2
_GEARS = Play(
    (
        Fact("turn of the larger after 2 s [rad]", 0.5 * 2.0**2 / 2 / _GEARED, 1e-10, lambda p: p.joint("large")[-1]),
        at_most("smaller, off -3 times it [rad]", _TIGHT, lambda p: abs(p.joint("small") + 3 * p.joint("large")).max()),
    )
)  # fmt: skip

_ROUND = 2 * math.pi / 3  # [s] once round at 3 rad/s
_DISC = Play(
    duration=_ROUND,
    frame_dt=_ROUND / 32,
    facts=(
        at_most(
            "distance from its circle [m]", 1e-7,
            lambda p: np.abs(np.hypot(*p.position("disc")[:, :2].T) - np.hypot(*p.position("disc")[0, :2])).max(),
        ),
        at_most(
            "distance from its start, once round [m]", 1e-7,
            lambda p: np.linalg.norm(p.position("disc")[-1] - p.position("disc")[0]),
        ),
        at_most("change of its height [m]", 1e-8, lambda p: np.ptp(p.position("disc")[:, 2])),
    ),
)  # fmt: skip

_BALL = Play(
    (
        Fact("way after 2 s: 5/14 g sin(slope) t^2 [m]", 5 / 14 * G * math.sin(0.2) * 4, 1e-12,
             lambda p: p.position("ball")[-1, 0]),
    )
)  # fmt: skip

ENTRIES: dict[str, Entry] = {
    "n_four_bar": Entry(n_four_bar, "windows of hinged bars that pass through one line twice a turn", (_A02,)),
    "andrews_squeezer": Entry(andrews_squeezer, "Andrews' squeezer: seven bodies, three loops", (_SQUEEZER,)),
    "gear_pair": Entry(gear_pair, "two gears, the larger driven", (_GEARS,)),
    "rolling_disc": Entry(rolling_disc, "a leaning disc that rolls round a circle, held by a constraint", (_DISC,)),
    "rolling_ball": Entry(rolling_ball, "a ball that rolls down a slope, held by a constraint", (_BALL,)),
}  # fmt: skip
