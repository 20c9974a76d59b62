"""Free and pivoted single bodies, and Drake's babyboot: motions with exact or published answers."""

from __future__ import annotations

import math

from ...collision.poses import from_axis_angle
from ...collision.shapes import Box
from ..builder import SceneBuilder
from ..joint_specs import Revolute, Spherical
from ..spec import SceneSpec


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
    At t = 1 s (VERIFICATION 1.13): quaternion -(.3049363885, -.3330180984, .1379999984, .8815150285), angular
    velocity in the body's axes (-1.4155049610, -4.2422100025, 6).
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
    """A symmetric top about a fixed point, in steady precession (VERIFICATION 1.15).

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
    """Kane's babyboot, chaotic: Drake's MG_chaotic_babyboot_test (VERIFICATION 2.4), from rest at qA = 90, qB = 1 deg.

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
