"""Free and pivoted single bodies, and Drake's babyboot: motions with exact or published answers."""

from __future__ import annotations

import math

import numpy as np

from ...collision.poses import from_axis_angle
from ...collision.shapes import Box
from ..builder import SceneBuilder
from ..joint_specs import Revolute, Spherical
from ..spec import SceneSpec
from .facts import Entry, Fact, Play


def free_bodies(n: int = 50) -> SceneSpec:
    """n free boxes of different sides on a grid 2 m apart, each thrown and spun differently; no ground."""
    b = SceneBuilder()
    side = math.ceil(math.sqrt(n))
    for i in range(n):
        r = [2 * math.modf((i + 1) * root)[0] - 1 for root in (math.sqrt(2), math.sqrt(3), math.sqrt(5))]
        b.add_body(
            f"box{i}",
            [Box((0.2 + 0.1 * r[0], 0.3 + 0.1 * r[1], 0.4 + 0.1 * r[2]))],
            mass=1.0 + 0.5 * r[1],
            position=(2.0 * (i % side), 2.0 * (i // side), 1.0),
            quaternion=from_axis_angle((r[0], r[1], r[2] + 2.0), r[0]),
            linear_velocity=(r[0], r[1], 2.0 + r[2]),
            angular_velocity=(3 * r[1], 3 * r[2], 3 * r[0]),
        )
    return b.build()


def tumbling_body() -> SceneSpec:
    """Drake's FreeBody (Kane 1983): an axisymmetric body in ballistic flight, I = 0.04, J = 0.02 kg m^2 about z.

    Starts at (1, 2, 3) m, axes along the world's, velocity (-4.2, 5.5, 6.1) m/s, angular velocity (2, 4, 6) rad/s.
    At t = 1 s (references.md, Free axisymmetric body) its quaternion is -(.3049363885, -.3330180984, .1379999984,
    .8815150285), its angular velocity in the body's axes (-1.4155049610, -4.2422100025, 6).
    """
    b = SceneBuilder()
    b.add_body(
        "body",
        mass=1.0,
        inertia=(0.04, 0.04, 0.02),
        position=(1.0, 2.0, 3.0),
        linear_velocity=(-4.2, 5.5, 6.1),
        angular_velocity=(2.0, 4.0, 6.0),
    )
    return b.build()


def heavy_top(*, tilt: float = math.radians(30), spin: float = 150.0, fast: bool = False) -> SceneSpec:
    """A symmetric top about a fixed point, in steady precession (references.md, Heavy tops).

    M = 0.5 kg, centre 0.05 m from the pivot, I1 = 0.002 about the pivot, I3 = 0.0008 kg m^2. tilt: of its axis from
    the vertical [rad]; spin: angular velocity about its own axis, the precession's share included [rad/s];
    fast: the faster of the two precessions (67.17 rad/s for the defaults, else 2.1079).
    """
    M, l, I1, I3, g = 0.5, 0.05, 0.002, 0.0008, 9.81
    root = math.sqrt((I3 * spin) ** 2 - 4 * I1 * math.cos(tilt) * M * g * l)
    precession = (I3 * spin + (root if fast else -root)) / (2 * I1 * math.cos(tilt))
    side = I1 - M * l * l
    b = SceneBuilder(gravity=(0.0, 0.0, -g))
    b.add_link(
        "top",
        joint=Spherical(),
        mass=M,
        com=(0.0, 0.0, l),
        inertia=(side, side, I3),
        q0=from_axis_angle((0.0, 1.0, 0.0), tilt),
        v0=(-precession * math.sin(tilt), 0.0, spin),  # in the top's axes: the vertical there is (-sin, 0, cos)
    )
    return b.build()


def babyboot() -> SceneSpec:
    """Kane's babyboot, chaotic (references.md, Babyboot), from rest at qA = 90, qB = 1 deg.

    Body A (the string) hangs on the world by a revolute joint about x, its centre LA below the joint; body B (the
    boot) turns on A about A's z axis, its centre LB below the first joint. Both frames sit at the first joint.
    Given in g, cm and g cm^2, here in SI. A's inertias other than about x play no part.
    qA, qB at t = 1 s: 81.4990021150, 1.9859278448 deg; at t = 2 s: 56.4260438450, 3.9134788166 deg.
    """
    g_cm2 = 1e-7
    b = SceneBuilder(gravity=(0.0, 0.0, -9.81))
    b.add_link(
        "A",
        joint=Revolute((1.0, 0.0, 0.0)),
        mass=0.01,
        com=(0.0, 0.0, -0.075),
        inertia=(50 * g_cm2, 50 * g_cm2, 0.0),
        q0=math.radians(90),
    )
    b.add_link(
        "B",
        parent="A",
        joint=Revolute((0.0, 0.0, 1.0)),
        mass=0.1,
        com=(0.0, 0.0, -0.2),
        inertia=(2500 * g_cm2, 500 * g_cm2, 2000 * g_cm2),
        q0=math.radians(1),
    )
    return b.build()


# -- facts --------------------------------------------------------------------------------------------

_KANE = "Free axisymmetric body"  # in docs/references.md
_PUBLISHED = 1e-9  # ten digits are given
_TUMBLING = Play(
    duration=1.0,
    max_dt=1e-3,
    facts=(
        *(
            Fact(f"quaternion at 1 s, component {k}", x, _PUBLISHED, lambda p, k=k: _same_side(p)[k], _KANE)
            for k, x in enumerate((-0.3049363885, 0.3330180984, -0.1379999984, -0.8815150285))
        ),
        *(
            Fact(
                f"angular velocity at 1 s, its own axes, component {k} [rad/s]", w, 1e-8,
                lambda p, k=k: (p.axes("body")[-1].T @ p.spin("body")[-1])[k], _KANE,
            )
            for k, w in enumerate((-1.4155049610, -4.2422100025, 6.0))
        ),
    ),
)  # fmt: skip


def _same_side(p):
    """The last quaternion; of the two equivalent ones, that with w < 0."""
    last = p.coordinates("body")[-1, 3:]
    return -last if last[0] > 0 else last


def _babyboot(t: int, q_a: float, q_b: float) -> tuple[Fact, Fact]:
    return (
        Fact(f"angle of A at {t} s [deg]", q_a, 1e-7, lambda p: math.degrees(p.joint("A")[60 * t]), "Babyboot"),
        Fact(f"angle of B at {t} s [deg]", q_b, 1e-7, lambda p: math.degrees(p.joint("B")[60 * t]), "Babyboot"),
    )


_BOOT = Play((*_babyboot(1, 81.4990021150, 1.9859278448), *_babyboot(2, 56.4260438450, 3.9134788166)), max_dt=1e-3)


def _precession(p) -> float:
    """Mean rate at which the top's axis went round the vertical [rad/s]."""
    w, x, y, z = p.coordinates("top").T
    heading = np.unwrap(np.arctan2(2 * (y * z - w * x), 2 * (x * z + w * y)))
    return float((heading[-1] - heading[0]) / (p.t[-1] - p.t[0]))


_TOP = Play((Fact("rate of precession [rad/s]", 2.10788155784, 1e-6, _precession, "Heavy tops"),), max_dt=1 / 4800)

ENTRIES = {
    "free_bodies": Entry(free_bodies, "n free boxes, thrown and spun"),
    "tumbling_body": Entry(tumbling_body, "Drake's axisymmetric free body (Kane 1983)", (_TUMBLING,)),
    "heavy_top": Entry(heavy_top, "a symmetric top in steady precession", (_TOP,)),
    "babyboot": Entry(babyboot, "Kane's chaotic babyboot", (_BOOT,)),
}
